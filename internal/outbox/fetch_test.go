package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"projector/internal/outbox"
	"projector/internal/retry"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/readmodeltest"
)

func formats(t *testing.T) event.Resolver {
	t.Helper()
	return event.Always(readmodeltest.JSONFormat(t))
}

func message(account string, version int64, more string) event.Message {
	return event.Message{Value: fmt.Appendf(nil, `{"eventId":"%[1]s-%[2]d%[3]s","eventType":"FundsCredited","accountId":"%[1]s","version":%[2]d,`+
		`"occurredAt":"2026-01-01T00:00:00Z","data":{"amount":"1.00","currency":"EUR"}}`, account, version, more)}
}

// table is an outbox that answers each query with the same messages.
type table struct {
	messages []event.Message
	broken   string // if it is set, the first message is a row that cannot be read, for this reason
	fails    error
	queries  [][]outbox.Version
	at       []time.Time
	closed   int
}

func (o *table) Ask(_ context.Context, wanted []outbox.Version, receive outbox.Receive) error {
	o.queries, o.at = append(o.queries, wanted), append(o.at, time.Now())
	if o.fails != nil {
		return o.fails
	}
	for i, m := range o.messages {
		reason := ""
		if i == 0 {
			reason = o.broken
		}
		if err := receive(m, reason); err != nil {
			return err
		}
	}
	return nil
}

func (o *table) Close() { o.closed++ }

func TestFetchReturnsOnlyRequestedEvents(t *testing.T) {
	o := &table{messages: []event.Message{
		message("a", 2, ""), message("a", 2, ""), message("a", 4, ""), message("b", 2, ""), {Value: []byte(`{`)}, {},
	}}
	answer, err := outbox.Fetch(t.Context(), o, formats(t), readmodel.Action{}, []outbox.Version{{AccountID: "a", Number: 2}, {AccountID: "a", Number: 3}})
	if err != nil {
		t.Fatal(err)
	}
	got := answer.Records[outbox.Version{AccountID: "a", Number: 2}]
	if len(answer.Records) != 1 || got == nil || got.Decoded.Event.ID != "a-2" || answer.Refused != 4 {
		t.Errorf("%+v", answer)
	}
	if answer.Why != "its value is null" || answer.Last != (outbox.Version{}) {
		t.Errorf("the last was refused because %s: %v", answer.Why, answer.Last)
	}
}

// TestFetchGoesOnAfterABrokenRow shows that the other rows are used if one cannot be read.
func TestFetchGoesOnAfterABrokenRow(t *testing.T) {
	o := &table{messages: []event.Message{message("a", 2, ""), message("a", 3, "")}, broken: "its headers are wrong"}
	wanted := []outbox.Version{{AccountID: "a", Number: 2}, {AccountID: "a", Number: 3}}
	answer, err := outbox.Fetch(t.Context(), o, formats(t), readmodel.Action{}, wanted)
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Records) != 1 || answer.Records[wanted[1]] == nil || answer.Refused != 1 || answer.Why != o.broken || answer.Last != (outbox.Version{}) {
		t.Errorf("%+v", answer)
	}
}

// TestFetchDoesNotChoose shows that none of several different events of one version is used. The
// order of the rows depends on the plan of the query, so the first row is not the right one.
func TestFetchDoesNotChoose(t *testing.T) {
	other := message("a", 2, "")
	other.Value = bytes.Replace(other.Value, []byte("1.00"), []byte("9.00"), 1)
	for name, second := range map[string]event.Message{"another id": message("a", 2, "-other"), "another amount": other} {
		rows := []event.Message{message("a", 2, ""), second, message("a", 2, ""), message("a", 3, "")}
		answer, err := outbox.Fetch(t.Context(), &table{messages: rows}, formats(t), readmodel.Action{}, []outbox.Version{{AccountID: "a", Number: 2}, {AccountID: "a", Number: 3}})
		if err != nil {
			t.Fatal(err)
		}
		if answer.Records[outbox.Version{AccountID: "a", Number: 2}] != nil || len(answer.Records) != 1 || answer.Refused != 3 ||
			answer.Why != "the outbox has different events of this account and version" || answer.Last.Number != 2 {
			t.Errorf("%s: %+v", name, answer)
		}
	}
}

// A row of the outbox may contain several events. If several of these events were requested, the
// query may return the row several times.
func TestFetchReturnsTheRequestedEntries(t *testing.T) {
	format, err := event.New(event.FormatJSON, event.Options{FirstVersion: 1, Mapping: event.Mapping{Envelope: event.Envelope{Entries: []string{"lines"}}}})
	if err != nil {
		t.Fatal(err)
	}
	row := func(messages ...event.Message) event.Message {
		lines := make([]string, len(messages))
		for i, m := range messages {
			lines[i] = string(m.Value)
		}
		return event.Message{Value: []byte(`{"lines":[` + strings.Join(lines, ",") + `]}`)}
	}
	one := row(message("a", 2, ""), message("c", 1, ""), message("b", 3, ""))
	o := &table{messages: []event.Message{one, one, row(message("c", 1, ""))}}
	a, b := outbox.Version{AccountID: "a", Number: 2}, outbox.Version{AccountID: "b", Number: 3}
	answer, err := outbox.Fetch(t.Context(), o, event.Always(format), readmodel.Action{}, []outbox.Version{a, b})
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Records) != 2 || answer.Records[a].Record.Entry != 1 || answer.Records[b].Record.Entry != 3 ||
		answer.Records[b].Decoded.Event.ID != "b-3/2" || answer.Records[b].Record.Offset != 3 || answer.Refused != 1 {
		t.Errorf("%+v", answer)
	}
}

func TestFetchIsBounded(t *testing.T) {
	large := []event.Header{{Key: "h", Value: []byte(strings.Repeat("x", 9<<20))}}
	o := &table{}
	wanted := []outbox.Version{}
	for v := range int64(4) {
		m := message("a", v+1, "")
		m.Headers = large
		o.messages, wanted = append(o.messages, m), append(wanted, outbox.Version{AccountID: "a", Number: v + 1})
	}
	other := message("a", 1, "another id")
	other.Headers = large
	o.messages = append(o.messages, other)
	answer, err := outbox.Fetch(t.Context(), o, formats(t), readmodel.Action{}, wanted)
	if err != nil || len(answer.Asked) != 2 || len(answer.Records) != 1 || answer.Records[wanted[1]] == nil || !answer.Contradicted[wanted[0]] {
		t.Errorf("asked for %v, %d records, contradicted %v, error %v", answer.Asked, len(answer.Records), answer.Contradicted, err)
	}
	large[0].Value = make([]byte, 33<<20) // of all events
	if answer, err = outbox.Fetch(t.Context(), o, formats(t), readmodel.Action{}, wanted[1:]); err != nil || len(answer.Asked) != 1 || len(answer.Records) != 1 {
		t.Errorf("of an event that is larger than the limit: asked for %v, %d records, error %v", answer.Asked, len(answer.Records), err)
	}
	o.messages, o.queries, wanted = nil, nil, nil
	mebibyte := []event.Header{{Key: "h", Value: make([]byte, 1<<20)}}
	for v := range int64(500) {
		m := message("a", v+1, "")
		if v < 40 {
			m.Headers = mebibyte
		}
		o.messages, wanted = append(o.messages, m), append(wanted, outbox.Version{AccountID: "a", Number: v + 1})
	}
	slices.Reverse(o.messages)
	if answer, err = outbox.Fetch(t.Context(), o, formats(t), readmodel.Action{}, wanted); err != nil || len(answer.Records) == 0 || len(o.queries) > 9 {
		t.Errorf("of large events at the end of the result: %d queries, %d records, error %v", len(o.queries), len(answer.Records), err)
	}
	o.messages = nil
	for v := range int64(1000) {
		o.messages = append(o.messages, message("b", v, ""))
	}
	if _, err := outbox.Fetch(t.Context(), o, formats(t), readmodel.Action{}, wanted[:1]); err == nil || !strings.Contains(err.Error(), "must select by $1 and $2") {
		t.Errorf("of a query that selects nothing: %v", err)
	}
}

// store is a read model with gaps that applies fetched events in order, like a repair.
type store struct {
	readmodel.Replayer // for the method that is not called

	gaps    []accountdb.Missing
	fails   error
	applied []string
}

func (s *store) Missing(context.Context, accountdb.MissingFilter) iter.Seq2[accountdb.Missing, error] {
	return func(yield func(accountdb.Missing, error) bool) {
		for _, m := range s.gaps {
			if !yield(m, nil) {
				return
			}
		}
	}
}

func (s *store) decide(records []*readmodel.RepairRecord, durable bool) {
	expected := map[string]int64{}
	for i := range s.gaps {
		expected[s.gaps[i].AccountID] = s.gaps[i].First
	}
	for _, r := range records {
		e := &r.Decoded.Event
		switch r.Decision = (projection.Decision{}); {
		case e.Version < expected[e.AccountID]:
			r.Decision.Outcome = projection.Duplicate
		case e.Version > expected[e.AccountID]:
			r.Decision = projection.Decision{Outcome: projection.DeadLettered, Class: event.VersionGap}
		case strings.HasSuffix(e.ID, "-poison"):
			r.Decision = projection.Decision{Outcome: projection.DeadLettered, Class: event.CurrencyMismatch}
		default:
			expected[e.AccountID]++
		}
		if r.Decided = durable; durable {
			s.applied = append(s.applied, fmt.Sprintf("%s %d %s", e.AccountID, e.Version, readmodel.EffectOf(r.Decision)))
		}
	}
	for i := range s.gaps {
		if durable {
			s.gaps[i].First = expected[s.gaps[i].AccountID]
		}
	}
}

func (s *store) Plan(_ context.Context, records []*readmodel.RepairRecord) error {
	s.decide(records, false)
	return s.fails
}

func (s *store) Apply(_ context.Context, records []*readmodel.RepairRecord, observe func(readmodel.Step)) error {
	s.decide(records, true)
	observe(readmodel.Step{Records: len(records), Healed: 1})
	return nil
}

type counter struct{ fetched, healed int }

func (c *counter) Fetched(n int) { c.fetched += n }
func (c *counter) Healed(n int)  { c.healed += n }

// The function running runs a Fetcher for the given simulated time and returns what it counted.
func running(t *testing.T, o *table, s *store, after, length time.Duration) *counter {
	t.Helper()
	counted := &counter{}
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	outbox.NewFetcher(outbox.Config{
		Outbox: o, Store: s, Missing: s.Missing, Formats: formats(t), After: after, Topic: "t", Partitions: func() []int32 { return []int32{0} },
		Actor: "me", Retry: retry.Policy{Initial: 200 * time.Millisecond, Max: 8 * time.Second}, Observer: counted, Log: slog.New(slog.DiscardHandler),
	}).Run(ctx)
	return counted
}

// The method asked returns how often a version was queried.
func (o *table) asked(v outbox.Version) (n int) {
	for _, query := range o.queries {
		for _, w := range query {
			if w == v {
				n++
			}
		}
	}
	return n
}

func TestFetcherAppliesUpToWhatIsMissingOrPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &table{messages: []event.Message{
			message("a", 5, ""), message("a", 6, ""), message("a", 8, ""), message("b", 1, ""), message("b", 2, "-poison"), message("b", 3, ""),
		}}
		s := &store{gaps: []accountdb.Missing{{AccountID: "a", First: 5, Last: 8}, {AccountID: "b", First: 1, Last: 3}, {AccountID: "c", First: 1, Last: 1}}}
		counted := running(t, o, s, time.Minute, time.Hour)
		if got := strings.Join(s.applied, ", "); got != "a 5 applied, a 6 applied, b 1 applied, b 2 poison" {
			t.Errorf("applied: %s", got)
		}
		if counted.fetched != 3 || counted.healed != 1 {
			t.Errorf("counted %+v", counted)
		}
		// The pauses between the queries are 1, 2, 4, 8 and 16 minutes.
		if n := o.asked(outbox.Version{AccountID: "c", Number: 1}); n < 5 || n > 6 {
			t.Errorf("asked %d times for what is not there", n)
		}
		if o.closed == 0 {
			t.Error("the connection is kept while nothing is due")
		}
	})
}

func TestFetcherSendsOneQueryASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, s := &table{}, &store{}
		for i := range 3000 {
			s.gaps = append(s.gaps, accountdb.Missing{AccountID: fmt.Sprint(i), First: 1, Last: 2})
		}
		s.gaps = append(s.gaps, accountdb.Missing{AccountID: "long", First: 1, Last: 1_000_000})
		running(t, o, s, time.Second, 20*time.Second)
		for i, query := range o.queries {
			if len(query) > outbox.AskAtOnce || i > 0 && o.at[i].Sub(o.at[i-1]) < time.Second {
				t.Errorf("question %d is for %d versions, after %s", i, len(query), o.at[i].Sub(o.at[max(0, i-1)]))
			}
		}
		if n := o.asked(outbox.Version{AccountID: "long", Number: 1}); n == 0 {
			t.Error("the last account was never asked for")
		}
	})
}

func TestFetcherWaitsDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &table{fails: errors.New("away")}
		running(t, o, &store{}, time.Minute, time.Minute)
		var waits []time.Duration
		for i := 1; i < len(o.at); i++ {
			waits = append(waits, o.at[i].Sub(o.at[i-1]))
		}
		if len(waits) < 6 || waits[0] != time.Second || waits[len(waits)-1] < 4*time.Second {
			t.Errorf("waits %v", waits) // one query is always sent, to check the outbox
		}
	})
}

func TestFetcherSparesAReadModelThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &table{messages: []event.Message{message("a", 1, "")}}
		s := &store{gaps: []accountdb.Missing{{AccountID: "a", First: 1, Last: 1}}, fails: errors.New("away")}
		if counted := running(t, o, s, time.Minute, time.Minute); counted.fetched != 0 || len(s.applied) > 0 {
			t.Errorf("counted %+v, applied %v", counted, s.applied)
		}
		if n := len(o.queries); n < 4 || n > 8 {
			t.Errorf("%d questions in a minute", n)
		}
	})
}
