package replay_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/internal/replay"
	"projector/internal/topic"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/readmodeltest"
)

const (
	eventTopic = "events"
	dlqTopic   = "events.dlq"
)

// source is a DLQ topic in memory. The partitions in the field lost cannot be read.
type source struct {
	records []*kgo.Record
	lost    map[int32]bool
	read    int
}

func (s *source) Records(context.Context, topic.Scope) iter.Seq2[*kgo.Record, error] {
	return func(yield func(*kgo.Record, error) bool) {
		for partition := range s.lost {
			if !yield(nil, &topic.PartitionError{Topic: dlqTopic, Partition: partition, Err: errors.New("no leader")}) {
				return
			}
		}
		for _, r := range s.records {
			if s.read++; !yield(r, nil) {
				return
			}
		}
	}
}

func (s *source) ReadAt(_ context.Context, partition int32, offset int64) (*kgo.Record, error) {
	for _, r := range s.records {
		if r.Partition == partition && r.Offset == offset {
			return r, nil
		}
	}
	return nil, topic.ErrNoRecord
}

func (s *source) Extents(context.Context) (topic.Extents, bool, error) {
	all := topic.Extents{}
	for partition := range int32(3) {
		e := topic.Extent{Partition: partition}
		if s.lost[partition] {
			e.Err = &topic.PartitionError{Topic: dlqTopic, Partition: partition, Err: errors.New("no leader")}
		}
		all.Partitions = append(all.Partitions, e)
	}
	return all, true, nil
}

// store is a read model in memory. Each of its accounts waits for the version that follows its
// current version.
type store struct {
	readmodel.Replayer // its discards are not used

	versions map[string]int64
	history  map[[2]int64]readmodel.DeadLetterHistory
	actions  []readmodel.Action
	applied  []string
	fails    error // returned by Apply and Record
}

func (s *store) ReplayStatuses(_ context.Context, subjects []readmodel.Subject) ([]projection.ReplayStatus, error) {
	statuses := make([]projection.ReplayStatus, len(subjects))
	for i, of := range subjects {
		statuses[i].Passed = of.Version <= s.versions[of.AccountID]
	}
	return statuses, nil
}

func (s *store) decide(r *readmodel.RepairRecord) {
	have := s.versions[r.Decoded.Event.AccountID]
	switch version := r.Decoded.Event.Version; {
	case version <= have:
		r.Decision.Outcome = projection.Duplicate
	case version == have+1:
		r.Decision.Outcome = projection.Applied
		s.versions[r.Decoded.Event.AccountID] = version
	default:
		r.Decision = projection.Decision{Outcome: projection.DeadLettered, Class: event.VersionGap}
	}
	r.Decided = true
}

func (s *store) Plan(_ context.Context, records []*readmodel.RepairRecord) error {
	before := s.versions
	s.versions = maps.Clone(before)
	for _, r := range records {
		s.decide(r)
		r.Decided = false
	}
	s.versions = before
	return nil
}

func (s *store) Apply(_ context.Context, records []*readmodel.RepairRecord, observe func(readmodel.Step)) error {
	for i, r := range records {
		if s.fails != nil && i > 0 {
			return s.fails
		}
		s.decide(r)
		s.applied = append(s.applied, fmt.Sprintf("%s %d", r.Decoded.Event.AccountID, r.Decoded.Event.Version))
		observe(readmodel.Step{Records: 1})
	}
	return nil
}

func (*store) MarkDiscarded(context.Context, []projection.DecodedRecord) error { return nil }

func (s *store) History(context.Context, string, []readmodel.DeadLetterPlace) (map[[2]int64]readmodel.DeadLetterHistory, error) {
	return s.history, nil
}

func (s *store) Record(_ context.Context, actions []readmodel.Action) error {
	s.actions = append(s.actions, actions...)
	return s.fails
}

func eventOf(account string, version int) string {
	return fmt.Sprintf(`{"eventId":"%s-%d","eventType":"FundsCredited","accountId":%q,"version":%d,`+
		`"occurredAt":"2026-01-01T00:00:00Z","data":{"amount":"1.00","currency":"EUR"}}`, account, version, account, version)
}

// letter returns the record of the DLQ topic for a dead-lettered version of an account.
func letter(class event.Class, account string, version int, offset int64, value string) *kgo.Record {
	r := dlq.Record(projection.DeadLetter{
		Class: class, Message: "why", AccountID: account, EventID: fmt.Sprintf("%s-%d", account, version), Received: int64(version),
		Record: projection.Record{Topic: eventTopic, Offset: offset, Message: event.Message{Key: []byte(account), Value: []byte(value)}},
	}, dlq.Stamp{Group: "g", Projection: readmodel.BalanceName}, dlqTopic, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	r.Offset = offset
	return r
}

func gap(account string, version int, offset int64) *kgo.Record {
	return letter(event.VersionGap, account, version, offset, eventOf(account, version))
}

func formats(t *testing.T) event.Resolver {
	t.Helper()
	return event.Always(readmodeltest.JSONFormat(t))
}

func scanOf(t *testing.T, from *source, in *store) *replay.Scan {
	t.Helper()
	return &replay.Scan{Topic: dlqTopic, Source: from, Store: in, Formats: formats(t), Payload: true}
}

// The function planned reads the dead letters and plans their replay.
func planned(t *testing.T, r *replay.Replay, from *source, in *store) *replay.Replay {
	t.Helper()
	r.Store, r.Actor = in, "me"
	if r.MaxReplays == 0 {
		r.MaxReplays = 10
	}
	if err := scanOf(t, from, in).Each(t.Context(), r.Add); err != nil {
		t.Fatal(err)
	}
	if err := r.Plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// The function outcomes returns the plan and the result of each item.
func outcomes(r *replay.Replay) string {
	var all []string
	for _, item := range r.Items {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %d %s %s", item.Entry.AccountID, *item.Entry.Received, item.Plan, item.Result)))
	}
	return strings.Join(all, ", ")
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
