package position

import (
	"context"
	"fmt"
	"slices"
	"time"

	"projector/internal/cli/output"
	"projector/internal/consumer"
	"projector/internal/topic"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// checkMemory refuses a position if the inbox no longer has markers for some of the records that
// would be read again. It returns another check, which must run in the transaction that sets the
// positions. This check is nil if the projection does not use the inbox.
func (s *setPlan) checkMemory(ctx context.Context) (holds func(context.Context, readmodel.Querier) error, err error) {
	kind, err := s.cmd.Kind()
	if err != nil {
		return nil, err
	}
	memory := kind.Memory()
	if memory == nil {
		return nil, nil
	}
	until, err := memory.PrunedUntil(ctx, s.on.Pool)
	if err != nil {
		return nil, err
	}
	if !until.IsZero() {
		if err := s.checkSpans(ctx, memory); err != nil {
			return nil, err
		}
		s.warnNewTopic(until)
	}
	return func(ctx context.Context, db readmodel.Querier) error {
		now, err := memory.PrunedUntil(ctx, db)
		if err == nil && now.Sub(until) > readmodel.MemoryMargin {
			err = &projection.RefusedPositionError{Reason: "the inbox was pruned while this was checked: type it again"}
		}
		return err
	}, nil
}

// checkSpans refuses a position if the inbox no longer has markers for some of the records that would
// be read again.
func (s *setPlan) checkSpans(ctx context.Context, memory readmodel.Memory) error {
	check := &memoryCheck{setPlan: s, memory: memory, shown: output.NewProgress(s.on.Std.Err, "checked against the inbox")}
	defer check.shown.Done()
	for i, plan := range s.plans {
		span := topic.Span{Partition: s.sets[i].Partition, From: plan.To, To: plan.Processed.Offset}
		if err := check.span(ctx, span); err != nil {
			return err
		}
	}
	return nil
}

// warnNewTopic prints a warning if the positions are set in a topic or in partitions that are new to
// the group. Their records have not been processed, so checkSpans reads none of them. But they may
// repeat events of an earlier topic, and the inbox no longer has markers of events that were counted
// before the given time.
func (s *setPlan) warnNewTopic(until time.Time) {
	read := slices.ContainsFunc(s.plans, func(p projection.Repositioned) bool { return p.From != nil })
	if s.cmd.NewTopic || !read {
		s.on.Std.Notef("the inbox of %s remembers what was counted since %s: if the records repeat an older event, it would count twice; "+
			"begin after such events, with --time and --skip-unread\n", s.of.Projection, output.SecondText(until))
	}
}

// memoryCheck finds processed events that no longer have a marker in the inbox.
type memoryCheck struct {
	*setPlan
	memory  readmodel.Memory
	shown   *output.Progress
	read    int64
	ids     []string
	offsets []int64
	last    int64 // offset of the last event without a marker
}

// memoryPiece is how many events one query checks.
const memoryPiece = 5000

func (m *memoryCheck) span(ctx context.Context, span topic.Span) error {
	m.last = projection.NoOffset
	if span.From >= span.To {
		return nil
	}
	for record, err := range m.reader.Range(ctx, span) {
		if err != nil {
			return err
		}
		if err := m.add(ctx, record.Offset, consumer.FromKafka(record).Message); err != nil {
			return err
		}
	}
	if err := m.query(ctx); err != nil {
		return err
	}
	if m.last == projection.NoOffset {
		return nil
	}
	return &projection.RefusedPositionError{Reason: fmt.Sprintf(
		"partition %d: the inbox no longer remembers all that %s has counted from %d to %d, and so not which of it was counted; it does from %d on",
		span.Partition, m.of.Projection, span.From, m.last, m.last+1)}
}

func (m *memoryCheck) add(ctx context.Context, offset int64, message event.Message) error {
	format, err := m.cmd.formats.Resolve(ctx, message)
	if err != nil {
		return err
	}
	m.read++
	for _, r := range projection.AppendDecoded(nil, projection.Record{Message: message}, format) {
		if d := &r.Decoded; d.Identity == event.Identified && d.Fault == nil && !d.Tombstone && !d.Skip {
			m.ids, m.offsets = append(m.ids, d.Event.ID), append(m.offsets, offset)
		}
	}
	if len(m.ids) < memoryPiece {
		return nil
	}
	return m.query(ctx)
}

func (m *memoryCheck) query(ctx context.Context) error {
	known, err := m.memory.Remembered(ctx, m.on.Pool, m.ids)
	if err != nil {
		return err
	}
	slices.Sort(known)
	for i, id := range m.ids {
		if _, remembered := slices.BinarySearch(known, id); !remembered {
			m.last = m.offsets[i]
		}
	}
	m.ids, m.offsets = m.ids[:0], m.offsets[:0]
	m.shown.Update(m.read, 0)
	return nil
}
