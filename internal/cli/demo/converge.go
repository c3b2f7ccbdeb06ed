package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"projector/internal/consumer"
	"projector/internal/testbank/compare"
	"projector/readmodel"
)

const (
	// progressEvery is how often the demo reads the projector's progress. Because of this interval,
	// the measured time may be up to 10 ms too long. Reading is cheap, because the progress is in
	// memory.
	progressEvery = 10 * time.Millisecond
	// stalledAfter is how long the demo waits without progress before it gives up.
	stalledAfter = time.Minute
)

// startProjector starts the projector in this process, as `projector run` does.
func (d *demo) startProjector(ctx context.Context) error {
	ctx = readmodel.WithReader(ctx, func() string { return d.run.Again(d.run.Topic) })
	p, err := d.run.Build(ctx, d.log, d.built)
	if err != nil {
		return err
	}
	d.close.add(func(context.Context) error { p.Close(); return nil })
	if err := p.Listen(ctx); err != nil {
		return err
	}
	d.process = p
	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // an interrupt does not stop it, because closers stop it in order
	go func() {
		defer close(d.ended)
		d.endedWith = p.Project(running)
	}()
	d.close.add(func(ctx context.Context) error {
		stop()
		select {
		case <-d.ended: // the error was returned before
			return nil
		case <-ctx.Done():
			return errors.New("the projector does not stop")
		}
	})
	return nil
}

// converge waits until the positions after all records are stored and no parked event is left that
// could be applied. It measures the time from the assignment of the first partition.
func (d *demo) converge(ctx context.Context) error {
	ends, err := compare.Ends(ctx, kadm.NewClient(d.kafka), d.run.Topic)
	if err != nil {
		return err
	}
	var started time.Time
	moved, furthest := time.Now(), -1
	d.progress.Step("consuming")
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		partitions := d.process.PartitionStatus()
		if started.IsZero() && slices.ContainsFunc(partitions, func(p consumer.PartitionStatus) bool { return p.Claimed }) {
			started = time.Now()
		}
		idle, behind := status(partitions, ends)
		if consumed := d.records - behind; consumed > furthest {
			furthest, moved = consumed, time.Now()
		}
		d.progress.Update(int64(furthest), int64(d.records))
		if idle {
			converged, err := d.converged(ctx, ends)
			if err != nil {
				return err
			}
			if converged {
				d.took = time.Since(started)
				return nil
			}
		}
		if time.Since(moved) > stalledAfter {
			return fmt.Errorf("nothing has moved for %s: %s", stalledAfter, whatIsBehind(partitions, ends))
		}
		select {
		case <-tick.C:
		case <-d.ended:
			return d.endedByItself()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// endedByItself returns why the projector has ended although nobody has stopped it.
func (d *demo) endedByItself() error {
	if d.endedWith != nil {
		return fmt.Errorf("the projector has ended: %w", d.endedWith)
	}
	return errors.New("the projector has ended by itself")
}

// status reports whether every partition works and has reached its end. It also returns how many
// records are not processed yet.
func status(partitions []consumer.PartitionStatus, ends map[int32]int64) (idle bool, behind int) {
	idle = len(partitions) == len(ends)
	left := 0
	for _, end := range ends {
		left += int(end)
	}
	for _, p := range partitions {
		if !p.Claimed {
			idle = false
			continue
		}
		left -= int(min(p.Position, ends[p.Partition]))
		if p.Position < ends[p.Partition] || !p.State.Working() {
			idle = false
		}
	}
	return idle, left
}

// healable counts parked events whose predecessor has been applied.
const healable = `
SELECT count(*)
FROM parked_event p
JOIN account_balance b ON b.account_id = p.account_id AND p.version = b.version + 1
WHERE p.class = 'version_gap' AND p.topic = $1`

// converged checks in the database that all positions equal the ends and that no parked event can be
// applied.
func (d *demo) converged(ctx context.Context, ends map[int32]int64) (bool, error) {
	positions, err := readmodel.LoadPositions(ctx, d.pool, d.run.GroupName(), d.run.Topic)
	if err != nil {
		return false, err
	}
	reached := 0
	for _, p := range positions {
		if end, known := ends[p.Partition]; known && p.Next == end {
			reached++
		}
	}
	if reached < len(ends) {
		return false, nil
	}
	var left int64
	if err := d.pool.QueryRow(ctx, healable, d.run.Topic).Scan(&left); err != nil {
		return false, fmt.Errorf("count what can be healed: %w", err)
	}
	return left == 0, nil
}

// whatIsBehind names the partitions that have not reached their end, with the reasons.
func whatIsBehind(partitions []consumer.PartitionStatus, ends map[int32]int64) string {
	if len(partitions) == 0 {
		return "no partition has been assigned"
	}
	var list []string
	for _, p := range partitions {
		if p.Claimed && p.Position >= ends[p.Partition] && p.State.Working() {
			continue
		}
		text := fmt.Sprintf("partition %d is at %d of %d, %s", p.Partition, p.Position, ends[p.Partition], p.State)
		if p.Reason != "" {
			text += " (" + p.Reason + ")"
		}
		list = append(list, text)
	}
	if len(partitions) < len(ends) {
		list = append(list, fmt.Sprintf("%d partitions are not assigned", len(ends)-len(partitions)))
	}
	if len(list) == 0 {
		return "all records are consumed, but parked events that could be applied are not"
	}
	return strings.Join(list, "; ")
}
