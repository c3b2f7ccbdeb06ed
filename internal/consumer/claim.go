package consumer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"projector/internal/session"
	"projector/projection"
)

// claim makes this process the owner of the partition and returns the position at which to
// continue. The parameter kafka is the offset that Kafka had committed at the assignment, or
// projection.NoOffset. claim stops the partition if retention has deleted records that were not
// consumed, or if the log has lost consumed records.
func (w *worker) claim(kafka int64) (projection.Position, error) {
	var topic partitionInfo
	err := w.retry("kafka", "read the partition's offsets", func(ctx context.Context) (err error) {
		topic, err = w.c.partitionInfo(ctx, w.partition)
		return w.c.cfg.Access.Consuming(err)
	})
	if err != nil {
		return projection.Position{}, err
	}
	w.status.setLog(topic)
	// The member id is read before the claim. If this member is evicted later, Kafka refuses a
	// commit with the old id.
	member := w.c.member()
	stored, err := w.confirm(kafka, member)
	if errors.Is(err, errOtherMember) {
		err = session.ErrAgain
	}
	if err != nil {
		return projection.Position{}, err
	}
	claim := projection.Claim{Owner: w.c.cfg.Owner, TopicID: topic.id, LogStart: topic.start, Committed: kafka, Fence: stored.Fence}
	lost, err := w.lostBeforeRewind(claim, &stored, topic)
	if err != nil {
		return projection.Position{}, err
	}
	if lost.found != "" {
		claim.Committed = projection.NoOffset // the partition stops at the stored position
	}
	var (
		pos   projection.Position
		found *projection.FencedOffset
	)
	err = w.retry("postgres", "claim the position", func(ctx context.Context) (err error) {
		pos, err = w.claimOnce(ctx, claim)
		// Only the first position that an attempt has found counts. A later attempt may find what
		// an earlier attempt of this claim has written.
		found = cmp.Or(found, pos.Found)
		return err
	})
	if err != nil {
		return pos, w.notClaimed(err, topic)
	}
	restored := found != nil && w.logRewind(kafka, *found, pos)
	w.claimed(pos)
	if restored && lost.found == "" {
		// Some connections may still be to the server that was the primary before. Its rows may be newer
		// than those of this server, and the events that are read again would look like duplicates.
		w.c.cfg.Database.Reset()
		return pos, session.ErrAgain
	}
	if pos.Next < topic.start {
		return pos, w.halt(expired(pos.Next, topic.start))
	}
	// A loss that was found before the claim is not checked again. Since then, new records may have
	// filled the log up to the position. They would hide the loss.
	if lost.found == "" || found == nil || *found != (projection.FencedOffset{Next: stored.Next, Fence: stored.Fence}) {
		lost, err = w.lostEnd(projection.NextOffset{Offset: pos.Next, LeaderEpoch: pos.LeaderEpoch}, topic)
	}
	if err != nil {
		return pos, err
	}
	if lost.found != "" {
		return pos, w.stopForAll(pos.Next, lost)
	}
	if err := w.commitSet(pos, member); err != nil {
		return pos, err
	}
	w.topicID = topic.id
	w.c.committer.claimed(w.partition, member)
	return pos, nil
}

// notClaimed suspends the partition if err is the reason, and returns what the claim returns.
func (w *worker) notClaimed(err error, topic partitionInfo) error {
	var stopped *projection.StoppedError
	switch {
	case errors.As(err, &stopped):
		w.claimed(stopped.Position) // so this worker notices when a person sets a new position
		if stopped.Status != projection.StatusStopped {
			// The log may lose its end meanwhile. When the partition goes on, new records may hide the loss.
			if lost, err := w.lostEnd(stopped.Position.NextOffset(), topic); err != nil {
				return err
			} else if lost.found != "" {
				return w.stopForAll(stopped.Position.Next, lost)
			}
		}
		return w.suspend(projection.State(stopped.Status), stopped.Reason)
	case errors.Is(err, projection.ErrTopicRecreated):
		w.status.fence.Store(0) // the stored position is not valid
		w.reportLag()
		return w.halt("the topic was deleted and created again, or is on another cluster: the stored position belongs to the old one. " +
			"See the runbook, \"topic recreated\"")
	case errors.Is(err, projection.ErrFenced):
		return session.ErrAgain // another owner has claimed the partition meanwhile
	}
	return err
}

// expired returns the reason for stopping a partition if retention has deleted records that were
// not consumed.
func expired(next, start int64) string {
	return fmt.Sprintf("offsets %d to %d were removed by retention before they were consumed. "+
		"See the runbook, \"position expired\"", next, start-1)
}

// confirm verifies Kafka's committed offset if the stored position is higher than this offset and
// therefore has to go back. It returns the position row. The claim moves the position back only if
// the row still has the same fence. Kafka's offset was read when the partition was assigned. Since
// then, this member may have been evicted without noticing it, and other members may have committed
// higher offsets. In that case, a move back to the offset that was read would be too far. So
// confirm commits the same offset again, because Kafka refuses a commit from an evicted member.
func (w *worker) confirm(kafka int64, member string) (stored projection.StoredPosition, err error) {
	if kafka == projection.NoOffset {
		return stored, nil
	}
	stored.Fence = noFence
	err = w.retry("postgres", "read the position", func(ctx context.Context) error {
		rows, err := w.c.cfg.Database.Positions(ctx)
		for _, row := range rows {
			if row.Partition == w.partition {
				stored = row
			}
		}
		return err
	})
	if err != nil || stored.Next <= kafka {
		return stored, err
	}
	err = w.retry("kafka", "confirm the committed offset", func(ctx context.Context) error {
		return w.c.committer.confirm(ctx, w.partition, member, kafka)
	})
	return stored, err
}

// lostBeforeRewind returns what the log has lost before the stored position, if the claim would
// move this position back to Kafka's committed offset. The committed offset is often some moments
// older than the position, and the log may still have it. So the position must not move back, or
// the loss would not be noticed.
func (w *worker) lostBeforeRewind(claim projection.Claim, stored *projection.StoredPosition, topic partitionInfo) (loss, error) {
	if claim.Resume(stored) >= stored.Next || stored.Next < topic.start ||
		stored.Status() != projection.StatusRunning || !projection.SameTopic(stored.TopicID, topic.id) {
		return loss{}, nil
	}
	return w.lostEnd(stored.NextOffset(), topic)
}

// commitSet commits to Kafka a position that a person has set. Until this commit, Kafka's committed
// offset is from before that change and is ignored.
func (w *worker) commitSet(pos projection.Position, member string) error {
	if !pos.SetByHand {
		return nil
	}
	w.log.Info("going on where the position was set", "offset", pos.Next)
	err := w.retry("kafka", "commit the position that was set", func(ctx context.Context) error {
		return w.c.committer.confirm(ctx, w.partition, member, pos.Next)
	})
	if err == nil {
		err = w.retry("postgres", "note the commit of the position that was set", func(ctx context.Context) error {
			return w.c.cfg.Database.PositionCommitted(ctx, w.partition, pos.Fence)
		})
	}
	if errors.Is(err, errOtherMember) || errors.Is(err, projection.ErrFenced) {
		return session.ErrAgain
	}
	return err
}

// noFence is the fence of a row that does not exist.
const noFence = -1

// halt stops the partition and logs an error. The partition stays assigned. Until the cause is
// fixed, it is not fetched, and the instance is not ready.
func (w *worker) halt(reason string) error {
	// Commands show the stored reason. An error of Halt is ignored, because the log and /readyz
	// have the reason too.
	ctx, cancel := context.WithTimeout(w.ctx, noteWithin)
	defer cancel()
	_ = w.c.cfg.Database.Halt(ctx, w.partition, w.status.fence.Load(), reason)
	err := w.suspend(projection.StateStopped, reason)
	w.untilFlush = true
	return err
}

// noteWithin limits the time for storing why a partition has stopped.
const noteWithin = 2 * time.Second

// suspend stops or pauses the partition for a reason that is already stored. A pause does not make
// the instance unready.
func (w *worker) suspend(state projection.State, reason string) error {
	w.untilFlush = false
	w.c.unseek(w)
	w.c.pause(w.partition)
	w.queue.hold()
	w.status.set(state, reason)
	w.c.cfg.Observer.Retrying(w.partition, false) // it waits for a person and does not retry
	w.c.cfg.Observer.Status(w.partition, state == projection.StateBreakerOpen, state == projection.StatePaused)
	if state == projection.StatePaused {
		w.c.cfg.Health.OK(w.c.condition(w.partition))
	} else {
		w.c.cfg.Health.Fail(w.c.condition(w.partition), reason)
	}
	if reason != w.halted || state != projection.StatePaused && time.Since(w.haltLogged) > logAgainAfter {
		w.halted, w.haltLogged = reason, time.Now()
		if state == projection.StatePaused {
			w.log.Info("partition paused", "reason", reason)
		} else {
			w.log.Error("partition stopped", "reason", reason)
		}
	}
	return errHalted
}

func (w *worker) markRunning() {
	w.passed(notAnswered)
	w.c.cfg.Observer.Status(w.partition, false, false)
	if !w.untilFlush {
		w.goesOn()
	}
}

// goesOn logs that a stopped partition continues.
func (w *worker) goesOn() {
	if w.halted != "" {
		w.halted = ""
		w.log.Info("partition goes on")
	}
}

// logAgainAfter is the minimum time between two log lines about the same stop.
const logAgainAfter = 5 * time.Minute

// repairCheck is the longest time that a stopped partition waits before it is claimed again.
const repairCheck = 10 * time.Second

// awaitRepair waits until a stopped partition should be claimed again. It returns false if the
// worker has to stop.
func (w *worker) awaitRepair() bool {
	timer := time.NewTimer(repairCheck)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-w.recheck:
		return true
	case <-w.drain.Done():
		return false
	}
}

func kafkaUnknownTopic(err error) bool { return errors.Is(err, kerr.UnknownTopicOrPartition) }
