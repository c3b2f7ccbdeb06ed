package consumer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/pace"
	"projector/projection"
)

// These constants say how often the background tasks check, and how long one check may take. The
// sum of watchEvery and watchWithin is less than 10 s, because an idle instance must be unready
// within 10 s after an outage begins.
const (
	watchEvery  = 3 * time.Second
	watchWithin = 4 * time.Second
	lagEvery    = 5 * time.Second
	// positionsEvery is the interval at which positions are read. It is short, because a pause must
	// take effect within 5 s.
	positionsEvery = 2 * time.Second
)

// watchDatabase reports whether the database is ready. It checks the database even if nothing is
// consumed.
func (c *Consumer) watchDatabase(ctx context.Context) {
	pace.Every(ctx, watchEvery, watchWithin, func(attempt context.Context) {
		err := c.cfg.Database.Ready(attempt)
		c.report(ctx, "postgres", "PostgreSQL: ", err)
		if err != nil && errclass.Postgres(err) == errclass.RetryReset {
			c.cfg.Database.Reset()
		}
	})
}

const (
	// fetchCondition is the name of the condition for errors of the client that consumes.
	fetchCondition = "fetch"
	// fetchQuiet is how long there must be no error before the condition ends. After an error, the
	// client must also have been a member of the group for so long. It is so much shorter than
	// stuckAfter that a single error never makes the instance unready. It is longer than a heartbeat
	// interval, so a client that loses its membership with each heartbeat does not end the condition.
	fetchQuiet = stuckAfter / 2
)

// watchKafka reports whether the brokers are ready and the topic exists. It also ends the condition
// for errors of the client. While the client cannot join the group, it returns an error only every
// half a minute, so the condition lasts until it is a member.
func (c *Consumer) watchKafka(ctx context.Context) {
	pace.Every(ctx, watchEvery, watchWithin, func(attempt context.Context) {
		err := c.askForTopic(attempt, c.cl)
		c.report(ctx, "kafka", "Kafka: ", err)
		if err == nil {
			c.noteFetching()
		}
	})
}

// noteFetching ends the condition for errors of the client if there was none for some time, if the
// client is a member of the group, and if it knows the committed offsets of its partitions.
func (c *Consumer) noteFetching() {
	joined, failed := c.joinedAt.Load(), c.fetchFailedAt.Load()
	if p, waits := c.withoutOffset(); waits {
		c.cfg.Health.FailAfter(fetchCondition, fmt.Sprintf("Kafka: the coordinator of group %s has not returned the committed offset of partition %d", c.cfg.Group, p),
			stuckAfter-watchEvery)
	} else if joined != nil && (failed == nil || min(time.Since(*failed), time.Since(*joined)) > fetchQuiet) {
		c.cfg.Health.OK(fetchCondition)
		c.throttled("kafka", "fetch records").Note(nil, 0)
	}
}

// watchAccess reports missing permissions. An instance without partitions would not notice them
// otherwise, because it fetches, commits and publishes nothing.
func (c *Consumer) watchAccess(ctx context.Context) {
	pace.Every(ctx, watchEvery, watchWithin, func(attempt context.Context) {
		err := c.cfg.Access.Check(attempt)
		if err == nil || errclass.Kafka(err).Unready() {
			c.report(ctx, "access", "Kafka: ", err)
		} // any other error means that no broker answers, which watchKafka reports
	})
}

// watchLeaders reports the assigned partitions that have no leader. The client itself reports no
// error while it waits for a leader.
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

// awaitTopic waits until the brokers answer and the topic exists.
func (c *Consumer) awaitTopic(ctx context.Context) error {
	cl, err := kgo.NewClient(c.cfg.Client...)
	if err != nil {
		return fmt.Errorf("create the Kafka client: %w", err)
	}
	defer cl.Close()
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	pace.Every(waiting, watchEvery, watchWithin, func(attempt context.Context) {
		c.cfg.Health.Beat()
		err := c.askForTopic(attempt, cl)
		if err == nil {
			stop()
		}
		c.report(ctx, "kafka", "Kafka: ", err)
	})
	return nil
}

func (c *Consumer) askForTopic(ctx context.Context, cl *kgo.Client) error {
	topics, err := kadm.NewClient(cl).ListTopics(ctx, c.cfg.Topic)
	if err != nil {
		seeds, _ := cl.OptValue(kgo.SeedBrokers).([]string)
		return c.cfg.Access.Consuming(errclass.NoAnswer(ctx, seeds, watchWithin, err))
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

// watchTopicID ends the use of the client when the topic's id has changed. Run then replaces the
// client.
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

// ensureDLQ tries to create the DLQ topic until it exists.
func (c *Consumer) ensureDLQ(ctx context.Context) {
	trying, stop := context.WithCancel(ctx)
	defer stop()
	pace.Every(trying, watchEvery, watchWithin, func(attempt context.Context) {
		err := c.cfg.DeadLetters.EnsureTopic(attempt)
		if err == nil {
			stop()
		}
		c.report(ctx, "dlq", "DLQ topic: ", err)
	})
}

// report logs and counts err, and sets the health condition. Without an error it clears the
// condition.
func (c *Consumer) report(ctx context.Context, condition, prefix string, err error) {
	dependency, what := checked(condition)
	switch {
	case ctx.Err() != nil:
		return
	case err == nil:
		c.cfg.Health.OK(condition)
	default:
		c.cfg.Health.Fail(condition, prefix+errclass.Safe(err))
		c.cfg.Observer.Retry(dependency, errclass.Reason(err)) // an idle instance has no other failures to count
	}
	c.throttled(dependency, what).Note(err, watchEvery)
}

// checked returns the dependency and the operation that a condition is about.
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

// watchPositions makes a worker claim its partition again if the stored position is missing, lower
// than the position that the worker knows, or has another fence. This happens, for example, after a
// repair, or after an older backup was restored. The check does not depend on new records.
func (c *Consumer) watchPositions(ctx context.Context) {
	pace.Every(ctx, positionsEvery, watchWithin, func(ctx context.Context) {
		if len(c.assignment()) == 0 {
			return
		}
		before := c.knownPositions()
		stored, err := c.cfg.Database.Positions(ctx)
		if err != nil {
			return // watchDatabase reports the error
		}
		for _, row := range stored {
			if w := c.worker(row.Partition); w != nil && row.SetByHand && w.status.fence.Load() == 0 && w.status.waiting() {
				w.reclaim() // the old position belonged to a deleted topic
			}
			if k, mine := before[row.Partition]; mine && row.Fence == k.Fence && row.Next >= k.Next {
				delete(before, row.Partition)
			}
		}
		for p, k := range before {
			if w := c.worker(p); w != nil && w.status.fence.Load() == k.Fence {
				w.reclaimChanged()
			}
		}
	})
}

func (c *Consumer) knownPositions() map[int32]projection.Position {
	known := map[int32]projection.Position{}
	for _, p := range c.assignment() {
		if w := c.worker(p); w != nil && w.status.fence.Load() > 0 {
			known[p] = projection.Position{Next: w.status.position.Load(), Fence: w.status.fence.Load()}
		}
	}
	return known
}

// Reclaim makes the worker of a partition claim it again. The worker then finds and applies parked
// events that it did not know. Reclaim returns false if the partition is not claimed, or waits for
// a person.
func (c *Consumer) Reclaim(partition int32) bool {
	w := c.worker(partition)
	if w == nil || w.status.fence.Load() <= 0 || w.status.waiting() {
		return false
	}
	w.reclaim()
	return true
}

// reclaimChanged is reclaim after the stored position has changed. It also ends reads that are
// retried, because nothing that is pending can be written any more.
func (w *worker) reclaimChanged() {
	w.reclaim()
	if changed := w.changed.Load(); changed != nil {
		(*changed)()
	}
}

func (w *worker) reclaim() {
	select {
	case w.recheck <- struct{}{}:
	default:
	}
}

// overdueEvery is the interval of the searches for parked events that could be applied now, and
// overdueWithin is the time limit of one search. A search among some millions of parked events takes
// several seconds.
const overdueEvery, overdueWithin = 10 * time.Second, 30 * time.Second

// overdueShare limits the cost of these searches if very many events are parked. The next search
// begins at the earliest after overdueShare times the duration of the last search.
const overdueShare = 50

// watchOverdue makes workers claim partitions again if they have parked events that could be
// applied now. Normally a worker applies a parked event after it has applied the account's previous
// version. But the worker does not know an event that the worker of another partition has parked
// after this worker has read the account. This can happen only if an account's events are in
// several partitions. Possible reasons are that partitions were added, or that a producer does not
// use the account as the key.
func (c *Consumer) watchOverdue(ctx context.Context) {
	var rest time.Time
	pace.Every(ctx, overdueEvery, overdueWithin, func(attempt context.Context) {
		assigned, start := c.assignment(), time.Now()
		if len(assigned) == 0 || start.Before(rest) {
			return
		}
		overdue, err := c.cfg.Database.Overdue(attempt, assigned)
		rest = start.Add(overdueShare * time.Since(start))
		if err == nil || attempt.Err() != nil && ctx.Err() == nil { // watchDatabase reports other errors
			c.throttled("postgres", "search for parked events whose turn has come").Note(err, overdueEvery)
		}
		for _, p := range overdue {
			if c.Reclaim(p) {
				c.partitionLog(p).Info("parked events wait although their turn has come: claiming the partition again")
			}
		}
	})
}
