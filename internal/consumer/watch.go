package consumer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/projection"
)

// How often the background tasks look, and how long one look may take: together
// well under the 10 s within which an idle instance must be unready.
const (
	watchEvery  = 3 * time.Second
	watchWithin = 4 * time.Second
	lagEvery    = 5 * time.Second
	// positionsEvery is for what people do to positions: a pause is obeyed within 5 s.
	positionsEvery = 2 * time.Second
)

// every calls look at once and then at a steady pace until ctx ends. A look has a
// deadline of its own.
func every(ctx context.Context, pause, within time.Duration, look func(context.Context)) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for ctx.Err() == nil {
		lookCtx, cancel := context.WithTimeout(ctx, within)
		look(lookCtx)
		cancel()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// watchDatabase keeps readiness true to the database, also while nothing is consumed.
func (c *Consumer) watchDatabase(ctx context.Context) {
	every(ctx, watchEvery, watchWithin, func(look context.Context) {
		err := c.cfg.Database.Ready(look)
		c.tell(ctx, "postgres", "PostgreSQL: ", err)
		if err != nil && errclass.Postgres(err) == errclass.RetryReset {
			c.cfg.Database.Reset()
		}
	})
}

// watchKafka does the same for the brokers, and says so while the topic is missing.
func (c *Consumer) watchKafka(ctx context.Context) {
	every(ctx, watchEvery, watchWithin, func(look context.Context) {
		err := c.askForTopic(look, c.adm)
		c.tell(ctx, "kafka", "Kafka: ", err)
		if err == nil && time.Since(time.Unix(0, c.fetchFailedAt.Load())) > stuckAfter {
			c.cfg.Health.OK("fetch")
			c.throttled("kafka", "fetch records").Note(nil, 0)
		}
	})
}

// watchAccess says what the brokers would refuse, before they do: nothing is fetched,
// committed or published by an instance that has nothing to do.
func (c *Consumer) watchAccess(ctx context.Context) {
	if c.cfg.Access == nil {
		return
	}
	every(ctx, watchEvery, watchWithin, func(look context.Context) {
		err := c.cfg.Access.Check(look)
		if err == nil || errclass.Kafka(err).Unready() {
			c.tell(ctx, "access", "Kafka: ", err)
		} // else the brokers cannot be asked, which watchKafka tells
	})
}

// explain names the missing permission that err stands for, if it does.
func (c *Consumer) explain(err error) error {
	if c.cfg.Access == nil || err == nil {
		return err
	}
	return c.cfg.Access.Consuming(err)
}

// watchLeaders says which of the assigned partitions nobody leads: the client waits
// for a leader without a word. A partition that is given up meanwhile must not be left
// with the condition, which nobody would take back.
func (c *Consumer) watchLeaders(topic kadm.TopicDetail) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.workers {
		condition := c.condition(p) + " leader"
		if err := topic.Partitions[p].Err; err != nil {
			c.cfg.Health.FailAfter(condition, "Kafka: "+errclass.Safe(err), stuckAfter)
		} else {
			c.cfg.Health.OK(condition)
		}
	}
}

// awaitTopic waits until the brokers can be asked and the topic exists.
func (c *Consumer) awaitTopic(ctx context.Context) error {
	cl, err := kgo.NewClient(c.cfg.Client...)
	if err != nil {
		return fmt.Errorf("create the Kafka client: %w", err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	every(waiting, watchEvery, watchWithin, func(look context.Context) {
		c.cfg.Health.Beat()
		err := c.askForTopic(look, adm)
		if err == nil {
			stop()
		}
		c.tell(ctx, "kafka", "Kafka: ", err)
	})
	return nil
}

func (c *Consumer) askForTopic(ctx context.Context, adm *kadm.Client) error {
	topics, err := adm.ListTopics(ctx, c.cfg.Topic)
	if err != nil {
		return c.explain(err)
	}
	if err := topics[c.cfg.Topic].Err; kafkaUnknownTopic(err) {
		return fmt.Errorf("topic %q does not exist yet, waiting for it: %w", c.cfg.Topic, err)
	} else if err != nil {
		return fmt.Errorf("topic %q: %w", c.cfg.Topic, err)
	}
	c.watchLeaders(topics[c.cfg.Topic])
	c.watchTopicID(topics[c.cfg.Topic].ID.String())
	return nil
}

// watchTopicID has the client replaced when the topic has another id than the one that it
// consumes.
func (c *Consumer) watchTopicID(id string) {
	switch {
	case !projection.SameTopic(c.topicID, id):
		c.cfg.Log.Warn("the topic was deleted and created again: leaving the group and joining it again")
		c.topicID = id
		c.recreated()
	case !slices.Contains(projection.UnknownTopicIDs(), id):
		c.topicID = id
	}
}

// ensureDLQ creates the DLQ topic, trying until it is there.
func (c *Consumer) ensureDLQ(ctx context.Context) {
	trying, stop := context.WithCancel(ctx)
	defer stop()
	every(trying, watchEvery, watchWithin, func(attempt context.Context) {
		err := c.cfg.DeadLetters.EnsureTopic(attempt)
		if err == nil {
			stop()
		}
		c.tell(ctx, "dlq", "DLQ topic: ", err)
	})
}

// tell makes a condition follow err.
func (c *Consumer) tell(ctx context.Context, condition, prefix string, err error) {
	switch {
	case ctx.Err() != nil:
	case err == nil:
		c.cfg.Health.OK(condition)
		c.throttled(checked(condition)).Note(nil, watchEvery)
	default:
		c.cfg.Health.Fail(condition, prefix+errclass.Safe(err))
		c.throttled(checked(condition)).Note(err, watchEvery)
	}
}

// checked names the dependency behind a condition, and what is done to it, for the log.
func checked(condition string) (dependency, what string) {
	switch condition {
	case "access":
		return "kafka", "check permissions"
	case "dlq":
		return "kafka", "create the DLQ topic"
	default:
		return condition, "check"
	}
}

// watchPositions makes workers read again whose stored position is not what they
// know: after a repair or the restore of an older backup, also when nothing arrives.
func (c *Consumer) watchPositions(ctx context.Context) {
	every(ctx, positionsEvery, watchWithin, func(ctx context.Context) {
		if len(c.assignment()) == 0 {
			return
		}
		before := c.knownPositions()
		stored, err := c.cfg.Database.Positions(ctx)
		if err != nil {
			return // watchDatabase tells
		}
		for _, row := range stored {
			if w := c.worker(row.Partition); w != nil && row.SetByHand && w.status.fence.Load() == 0 && w.status.stands() {
				w.lookAgain() // it had a position of another topic
			}
			if k, mine := before[row.Partition]; mine && row.Fence == k.Fence && row.Next >= k.Next {
				delete(before, row.Partition)
			}
		}
		for p, k := range before {
			if w := c.worker(p); w != nil && w.status.fence.Load() == k.Fence {
				w.lookAgain()
			}
		}
	})
}

// knownPositions are the positions as the workers know them.
func (c *Consumer) knownPositions() map[int32]projection.Position {
	known := map[int32]projection.Position{}
	for _, p := range c.assignment() {
		if w := c.worker(p); w != nil && w.status.fence.Load() > 0 {
			known[p] = projection.Position{Next: w.status.position.Load(), Fence: w.status.fence.Load()}
		}
	}
	return known
}

// lookAgain makes the worker claim its partition anew.
func (w *worker) lookAgain() {
	select {
	case w.recheck <- struct{}{}:
	default:
	}
}

// overdueEvery is how often parked events are looked for that could be applied and
// are not.
const overdueEvery = 10 * time.Second

// overdueShare bounds what looking costs where very many events are parked: so many
// times as long as a look took, there is no other.
const overdueShare = 50

// watchOverdue has partitions claimed anew that hold parked events whose turn has come.
// A worker heals an account when it applies the version before; it does not know what
// the worker of another partition has parked since it read the account. That happens
// only when an account's events are in several partitions: after partitions were added,
// or when a producer does not key them by account.
func (c *Consumer) watchOverdue(ctx context.Context) {
	var rest time.Time
	every(ctx, overdueEvery, watchWithin, func(look context.Context) {
		assigned, start := c.assignment(), time.Now()
		if len(assigned) == 0 || start.Before(rest) {
			return
		}
		overdue, err := c.cfg.Database.Overdue(look, assigned)
		rest = start.Add(overdueShare * time.Since(start))
		if err != nil {
			return // watchDatabase tells
		}
		for _, p := range overdue {
			if w := c.worker(p); w != nil && w.status.fence.Load() > 0 && !w.status.stands() {
				w.log.Info("parked events wait although their turn has come: claiming the partition anew")
				w.lookAgain()
			}
		}
	})
}
