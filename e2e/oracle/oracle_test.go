package oracle_test

import (
	"fmt"
	"slices"
	"testing"

	"projector/e2e/oracle"
)

// event is one line of a script: what becomes of it is worked out by hand.
func event(version int, id, kind, data string) string {
	return fmt.Sprintf(`{"eventId":%q,"eventType":%q,"accountId":"a","version":%d,"occurredAt":"2026-01-01T00:00:00Z","data":%s}`,
		id, kind, version, data)
}

func TestByHand(t *testing.T) {
	script := []struct{ value, class string }{
		{event(1, "e1", "AccountOpened", `{"currency":"EUR"}`), ""},
		{event(3, "e3", "FundsCredited", `{"amount":"1.5","currency":"EUR"}`), "version_gap"},
		{event(4, "e4", "FundsCredited", `{"amount":"1","currency":"USD"}`), "version_gap"},
		{event(5, "e5", "FundsDebited", `{"amount":"0.05","currency":"EUR"}`), "version_gap"},
		{event(2, "e2", "FundsCredited", `{"amount":10,"currency":"EUR"}`), "malformed_payload"},
		{event(2, "f2", "FundsCredited", `{"amount":"10.00","currency":"EUR"}`), ""}, // heals 3; 4 has the wrong currency
		{event(2, "e2", "FundsCredited", `{"amount":10,"currency":"EUR"}`), ""},      // below the version: a duplicate
		{event(3, "g3", "FundsCredited", `{"amount":"1.5","currency":"EUR"}`), "version_conflict"},
		{event(6, "e6", "FundsCredited", `{"amount":"1.005","currency":"EUR"}`), "invalid_amount"},
		{event(7, "e7", "Renamed", `null`), "version_gap"},
		{event(8, "e8", "Renumbered", `{}`), "unknown_event_type"},
		{`{"eventId":"x","eventId":"x"}`, "malformed_payload"},
		{`{"eventType":"Renamed"}`, ""},
	}
	o := oracle.New("Renamed")
	records := make([]oracle.Record, len(script))
	want := []string{}
	for i, line := range script {
		records[i] = oracle.Record{Offset: int64(i), Value: []byte(line.value)}
		if line.class != "" {
			want = append(want, line.class)
		}
		if i == 5 {
			want = append(want, "currency_mismatch") // of event 4, at its turn
		}
	}
	o.Judge(records)
	var got []string
	for _, l := range o.Letters {
		got = append(got, l.Class)
	}
	if !slices.Equal(got, want) {
		t.Errorf("dead letters:\n got %v\nwant %v", got, want)
	}
	row := o.Rows()["a"]
	if row.Balance != "11.50" || row.Version != 3 || row.LastEventID != "e3" || !row.Stale || row.WaitingFor != 4 {
		t.Errorf("row: %+v", row)
	}
	if got, want := *o.Outcomes[0], (oracle.Outcomes{Applied: 2, Duplicate: 1, Ignored: 1, DeadLettered: 9}); got != want {
		t.Errorf("outcomes: got %+v, want %+v", got, want)
	}
}

func TestStrictJSON(t *testing.T) {
	good := event(1, "e1", "AccountOpened", `{"currency":"EUR"}`)
	for name, value := range map[string]string{
		"byte order mark":   "\ufeff" + good,
		"trailing":          good + "{}",
		"lone surrogate":    event(1, "e1", "AccountOpened", `{"currency":"EUR","x":"\ud800"}`),
		"low surrogate":     event(1, "e1", "AccountOpened", `{"currency":"EUR","x":"\udc00"}`),
		"nested double key": event(1, "e1", "AccountOpened", `{"currency":"EUR","x":{"y":1,"y":2}}`),
		"invalid UTF-8":     event(1, "e1", "AccountOpened", `{"currency":"EUR","x":"`+"\xff"+`"}`),
		"array":             "[]",
		"empty":             "",
	} {
		o := oracle.New()
		o.Judge([]oracle.Record{{Value: []byte(value)}})
		if len(o.Letters) != 1 || o.Letters[0].Class != "malformed_payload" || o.Letters[0].Identified {
			t.Errorf("%s: %+v", name, o.Letters)
		}
	}
	o := oracle.New()
	o.Judge([]oracle.Record{{Value: []byte(event(1, "e1", "AccountOpened", `{"currency":"EUR","x":"\ud83d\ude00\\ud800"}`))}})
	if len(o.Letters) != 0 {
		t.Errorf("a surrogate pair and an escaped backslash are fine: %+v", o.Letters)
	}
}
