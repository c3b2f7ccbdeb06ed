package replay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/errclass"
	"projector/internal/replay"
	"projector/internal/topic"
	"projector/projection/event"
	"projector/readmodel"
)

func TestAScanDeliversInChunks(t *testing.T) {
	from := &source{}
	const n = 2*replay.ChunkRecords + 10
	for i := range n {
		from.records = append(from.records, gap(fmt.Sprintf("acc-%06d", i), 2, int64(i)))
	}
	from.records = append(from.records, &kgo.Record{Topic: dlqTopic, Value: []byte("?"), Offset: n}) // the last record is not a dead letter
	s, handed := scanOf(t, from, &store{}), 0
	s.Payload = false
	err := s.Each(t.Context(), func(d *replay.DeadLetter) error {
		if handed++; handed == replay.ChunkRecords && from.read != replay.ChunkRecords {
			t.Errorf("%d were read before the first chunk was handed on", from.read)
		}
		if d.Entry.Value != nil {
			t.Fatal("a list keeps payloads")
		}
		return nil
	})
	if err != nil || handed != n || s.Foreign != 1 {
		t.Errorf("handed on %d, foreign %d, error %v", handed, s.Foreign, err)
	}
}

// A header or a correlation id may be as large as a value. A chunk with many of them would need
// gigabytes of memory.
func TestAChunkHasFewLargeDeadLetters(t *testing.T) {
	large := make([]byte, 1<<20)
	for name, header := range map[string]kgo.RecordHeader{
		"header":                       {Key: "trace", Value: large},
		"correlation id":               {Key: dlq.HeaderCorrelationID, Value: bytes.ReplaceAll(large, []byte{0}, []byte{'x'})},
		"correlation id of the record": {Key: "correlationId", Value: bytes.ReplaceAll(large, []byte{0}, []byte{'x'})},
	} {
		from := &source{}
		for i := range 40 {
			record := gap(fmt.Sprintf("acc-%d", i), 2, int64(i))
			record.Headers = append(record.Headers, header)
			from.records = append(from.records, record)
		}
		s, handed := scanOf(t, from, &store{}), 0
		s.Payload = name == "header"
		if err := s.Each(t.Context(), func(*replay.DeadLetter) error {
			if handed++; handed == 1 && from.read > 17 {
				t.Errorf("%s: %d dead letters are in memory", name, from.read)
			}
			return nil
		}); err != nil || handed != 40 {
			t.Errorf("%s: handed on %d, error %v", name, handed, err)
		}
	}
}

func TestAScanOfWhatCannotBeReadWhole(t *testing.T) {
	from := &source{records: []*kgo.Record{gap("a", 1, 0)}, lost: map[int32]bool{1: true}}
	s := scanOf(t, from, &store{})
	count := func(*replay.DeadLetter) error { return nil }
	var incomplete *replay.IncompleteError
	if err := s.Each(t.Context(), count); !errors.As(err, &incomplete) || incomplete.Lost.Partition != 1 || !slices.Equal(incomplete.Others, []int32{0, 2}) {
		t.Errorf("%v", err)
	}
	var lost []int32
	s.Lost = func(e *topic.PartitionError) { lost = append(lost, e.Partition) }
	n := 0
	if err := s.Each(t.Context(), func(*replay.DeadLetter) error { n++; return nil }); err != nil || n != 1 || !slices.Equal(lost, []int32{1}) {
		t.Errorf("%d, lost %v, %v", n, lost, err)
	}
}

func TestAPlanIsInTheOrderOfAccountsAndVersions(t *testing.T) {
	in := &store{versions: map[string]int64{"a": 1, "b": 5}}
	from := &source{records: []*kgo.Record{
		gap("b", 4, 0), gap("a", 3, 1), letter(event.MalformedPayload, "c", 1, 2, "garbage"), gap("a", 2, 3), gap("d", 7, 4),
	}}
	r := planned(t, &replay.Replay{}, from, in)
	equal(t, outcomes(r), "a 2 will_apply, a 3 will_apply, b 4 duplicate, c 1 poison, d 7 waiting")
	if len(in.actions)+len(in.applied) > 0 {
		t.Error("a plan changes something")
	}
	if err := r.Apply(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	equal(t, outcomes(r), "a 2 will_apply applied, a 3 will_apply applied, b 4 duplicate duplicate, c 1 poison poison, d 7 waiting waiting")
	if len(in.actions) != 1 || in.actions[0].AccountID != "c" || in.actions[0].Actor != "me" || in.actions[0].Result != replay.PlanPoison {
		t.Errorf("recorded of what was not tried: %+v", in.actions)
	}
	limited := planned(t, &replay.Replay{Limit: 1}, from, &store{versions: map[string]int64{"a": 1}})
	equal(t, outcomes(limited), "a 2 will_apply")
}

// TestAPlanNamesTheEventThatIsApplied uses a dead letter whose headers name another account and
// another version than its value, as after a change of the mapping. The plan, the filters and the
// audit trail must name the event that is applied.
func TestAPlanNamesTheEventThatIsApplied(t *testing.T) {
	in := &store{versions: map[string]int64{"a": 1, "b": 4}}
	from := &source{records: []*kgo.Record{letter(event.VersionGap, "a", 2, 0, eventOf("b", 5))}}
	r := planned(t, &replay.Replay{}, from, in)
	equal(t, outcomes(r), "b 5 will_apply")
	if err := r.Apply(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	equal(t, strings.Join(in.applied, ", "), "b 5")
	if a := r.Items[0].Record.Action; a.AccountID != "b" || *a.Version != 5 {
		t.Errorf("recorded: account %s, version %d", a.AccountID, *a.Version)
	}
	s, found := scanOf(t, from, in), 0
	s.Filter.Account = "a"
	if err := s.Each(t.Context(), func(*replay.DeadLetter) error { found++; return nil }); err != nil || found > 0 {
		t.Errorf("%d of account a, whose event it is not, error %v", found, err)
	}
}

func TestWhatWasReplayedTooOftenIsRefused(t *testing.T) {
	in := &store{versions: map[string]int64{"a": 1}, history: map[[2]int64]readmodel.DeadLetterHistory{{0, 3}: {Replays: 2}}}
	r := planned(t, &replay.Replay{MaxReplays: 2}, &source{records: []*kgo.Record{gap("a", 2, 3)}}, in)
	equal(t, outcomes(r), "a 2 poison refused")
	equal(t, r.Items[0].Reason(), "it has been replayed too often, see --max-replays")
}

// TestNothingIsAppliedIfTheTrailCannotBeWritten shows that nothing is applied if the audit trail
// cannot be written first. A later Apply then applies all items.
func TestNothingIsAppliedIfTheTrailCannotBeWritten(t *testing.T) {
	in := &store{versions: map[string]int64{}}
	r := planned(t, &replay.Replay{}, &source{records: []*kgo.Record{gap("a", 1, 0), gap("b", 1, 1)}}, in)
	in.fails = errors.New("the database is away")
	_ = r.Apply(t.Context(), nil)
	in.fails = nil
	if err := r.Apply(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	equal(t, strings.Join(in.applied, ", "), "a 1, b 1")
}

// producer accepts all records except those whose key is equal to the field fails.
type producer struct {
	values []string
	fails  string
	limit  int // larger records are refused; 0 means no limit
}

func (p *producer) Produce(_ context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	if string(r.Key) == p.fails {
		promise(r, errors.New("away"))
		return
	}
	if p.limit > 0 && len(r.Value) > p.limit {
		promise(r, kerr.MessageTooLarge)
		return
	}
	p.values = append(p.values, string(r.Value))
	promise(r, nil)
}

// A record that the topic refuses as too large does not stop the records after it.
func TestARecordThatIsTooLargeIsRefusedAlone(t *testing.T) {
	in, to := &store{versions: map[string]int64{}}, &producer{limit: 1 << 20}
	large := gap("b", 2, 1)
	large.Value = append(large.Value, strings.Repeat(" ", 1<<20)...)
	r := planned(t, &replay.Replay{ToTopic: "again"}, &source{records: []*kgo.Record{gap("a", 2, 0), large, gap("c", 2, 2)}}, in)
	if err := r.Publish(t.Context(), to, nil); err != nil {
		t.Fatal(err)
	}
	equal(t, outcomes(r), "a 2 waiting published, b 2 waiting refused, c 2 waiting published")
	if why := r.Items[1].Reason(); r.Failed() != 1 || !strings.Contains(why, "max.message.bytes") || in.actions[1].Result != readmodel.ResultRefused {
		t.Errorf("%d failed, because %s: %+v", r.Failed(), why, in.actions)
	}
}

func TestPublishedRecordsAreInTheAuditTrail(t *testing.T) {
	in, to := &store{versions: map[string]int64{}}, &producer{fails: "b"}
	from := &source{records: []*kgo.Record{gap("c", 1, 2), gap("a", 2, 0), gap("b", 1, 1)}}
	r := planned(t, &replay.Replay{ToTopic: "again"}, from, in)
	err := r.Publish(t.Context(), to, nil)
	if err == nil || !strings.Contains(err.Error(), `publish to topic "again"`) {
		t.Errorf("%v", err)
	}
	equal(t, outcomes(r), "a 2 waiting published, b 1 will_apply, c 1 will_apply published")
	equal(t, strings.Join(to.values, " "), eventOf("a", 2)+" "+eventOf("c", 1))
	var recorded []string
	for _, a := range in.actions {
		recorded = append(recorded, a.AccountID+" "+a.Result+" "+a.Reason)
	}
	equal(t, strings.Join(recorded, ", "), "a published to topic again, c published to topic again")
}

// forbidden refuses every record, because the client may not write to the topic.
type forbidden struct{}

func (forbidden) Produce(_ context.Context, r *kgo.Record, promise func(*kgo.Record, error)) {
	promise(r, kerr.TopicAuthorizationFailed)
}

func TestAMissingACLIsNamed(t *testing.T) {
	in := &store{versions: map[string]int64{}}
	r := planned(t, &replay.Replay{ToTopic: "again"}, &source{records: []*kgo.Record{gap("a", 2, 0)}}, in)
	if err := r.Publish(t.Context(), forbidden{}, nil); err == nil || !strings.Contains(errclass.Safe(err), "missing ACL: WRITE on topic again") {
		t.Errorf("%v", err)
	}
	equal(t, outcomes(r), "a 2 waiting")
}

// TestAnEntryIsNotPublished shows that a dead letter is not published if its record has several
// events. It is not published even if it is resolved or its value is unreadable.
func TestAnEntryIsNotPublished(t *testing.T) {
	for _, value := range []string{eventOf("a", 2), "{"} {
		for _, have := range []int64{1, 2} {
			in, to := &store{versions: map[string]int64{"a": have}}, &producer{}
			entry := letter(event.VersionGap, "a", 2, 0, value)
			entry.Headers = append(entry.Headers, kgo.RecordHeader{Key: dlq.HeaderEntry, Value: []byte("1")})
			r := planned(t, &replay.Replay{ToTopic: "again"}, &source{records: []*kgo.Record{entry}}, in)
			if err := r.Publish(t.Context(), to, nil); err != nil {
				t.Fatal(err)
			}
			equal(t, outcomes(r), "a 2 poison refused")
			equal(t, strings.Join(to.values, " "), "")
		}
	}
}

func TestAnExportIsReadBack(t *testing.T) {
	var file bytes.Buffer
	in := &store{versions: map[string]int64{"a": 1}}
	from := &source{records: []*kgo.Record{gap("a", 2, 0), gap("a", 3, 1)}}
	err := scanOf(t, from, in).Each(t.Context(), func(d *replay.DeadLetter) error {
		return dlq.Export(&file, dlqTopic, &d.Entry)
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &replay.Replay{Store: in, MaxReplays: 10}
	s := scanOf(t, from, in)
	if err := s.EachOfFile(t.Context(), bytes.NewReader(file.Bytes()), r.Add); err != nil {
		t.Fatal(err)
	}
	if err := r.Plan(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, outcomes(r), "a 2 will_apply, a 3 will_apply")
	for _, item := range r.Items {
		if item.Altered() || item.NotInTopic {
			t.Errorf("%s %d is altered, or not in the topic", item.Entry.AccountID, *item.Entry.Received)
		}
	}
	var unreadable *replay.ExportError
	if err := s.EachOfFile(t.Context(), strings.NewReader("garbage"), r.Add); !errors.As(err, &unreadable) {
		t.Errorf("%v", err)
	}
}

// TestALongExportIsComparedWithItsTopic shows that, for a long file, whole partitions of the topic
// are read. A line that is missing in the topic is reported in this case, too.
func TestALongExportIsComparedWithItsTopic(t *testing.T) {
	var file bytes.Buffer
	in, from := &store{}, &source{}
	for i := range 150 {
		from.records = append(from.records, gap(fmt.Sprintf("acc-%03d", i), 2, int64(i)))
	}
	err := scanOf(t, from, in).Each(t.Context(), func(d *replay.DeadLetter) error {
		return dlq.Export(&file, dlqTopic, &d.Entry)
	})
	if err != nil {
		t.Fatal(err)
	}
	from.records = slices.Delete(from.records, 70, 71) // removed by retention, or never written
	s, read := scanOf(t, from, in), 0
	count := func(d *replay.DeadLetter) error {
		read++
		if altered := d.Entry.DLQOffset == 70; d.Altered() != altered || d.NotInTopic != altered {
			t.Errorf("offset %d: altered %v, not in the topic %v", d.Entry.DLQOffset, d.Altered(), d.NotInTopic)
		}
		return nil
	}
	var refused *replay.RefusedExportError
	if err := s.EachOfFile(t.Context(), bytes.NewReader(file.Bytes()), count); !errors.As(err, &refused) || !strings.HasPrefix(refused.Reason, "line 71: ") || read > 0 {
		t.Errorf("%d were handed on, %v", read, err)
	}
	s.AllowNotInTopic = true
	if err := s.EachOfFile(t.Context(), bytes.NewReader(file.Bytes()), count); err != nil || read != 150 {
		t.Errorf("%d were handed on, %v", read, err)
	}
}

// TestACorrectedHeaderOrKeyIsAltered shows that a change of a header or of the key is a correction,
// although the digest of the value stays the same. In some formats the headers or the key are part
// of the event.
func TestACorrectedHeaderOrKeyIsAltered(t *testing.T) {
	for name, correct := range map[string]func(*dlq.Entry){
		"a header": func(e *dlq.Entry) { e.Headers = []event.Header{{Key: "type", Value: []byte("debit")}} },
		"the key":  func(e *dlq.Entry) { e.Key = []byte("other") },
	} {
		in := &store{versions: map[string]int64{"a": 1}}
		from := &source{records: []*kgo.Record{gap("a", 2, 0)}}
		entry, err := dlq.Parse(from.records[0])
		if err != nil {
			t.Fatal(err)
		}
		correct(&entry)
		var file bytes.Buffer
		if err := dlq.Export(&file, dlqTopic, &entry); err != nil {
			t.Fatal(err)
		}
		r := &replay.Replay{Store: in, MaxReplays: 10}
		if err := scanOf(t, from, in).EachOfFile(t.Context(), bytes.NewReader(file.Bytes()), r.Add); err != nil {
			t.Fatal(err)
		}
		if err := r.Plan(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Apply(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		item := r.Items[0]
		if a := item.Record.Action; !item.Altered() || !a.Altered || a.ValueSHA256 == "" || a.ValueSHA256 != a.OriginalSHA256 {
			t.Errorf("%s: altered %v, recorded %v, digests %s and %s", name, item.Altered(), a.Altered, a.ValueSHA256, a.OriginalSHA256)
		}
	}
}
