package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"projector/internal/testbank"
)

// examples lists the projections of docs/examples and what their tables must contain.
var examples = []struct {
	file  string
	types []string // event types in the stream; the file does not accept all of them
	query string
	want  func(ownEvents) map[string]string
}{
	{
		"loyalty.sql",
		[]string{"PointsEarned", "PointsSpent", "PointsEarned", "TierChanged"},
		"SELECT account_id, points || ' ' || version FROM loyalty", ownEvents.loyalty,
	},
	{
		"event-count.sql",
		[]string{"AccountOpened", "FundsCredited", "FundsDebited", "AccountClosed", "CardIssued"},
		"SELECT account_id, events || ' ' || extract(epoch FROM last_at)::bigint FROM event_count", ownEvents.counts,
	},
	{
		"latest-address.sql",
		[]string{"AddressChanged", "AddressRemoved", "AddressChanged", "NameChanged"},
		"SELECT account_id, concat_ws('|', street, city, country, extract(epoch FROM since)::bigint) FROM latest_address", ownEvents.addresses,
	},
	{
		"fraud.sql",
		[]string{"CardDeclined", "LoginFailed", "PinWrong", "LoginSucceeded"},
		"SELECT extract(epoch FROM hour)::bigint || ' ' || event_type, events || ' ' || amount FROM fraud_hour", ownEvents.frauds,
	},
}

type ownEvent struct {
	account string
	version int
	kind    string
	at      time.Time
	n       int // the values in data are computed from n
}

type ownEvents []ownEvent

// drawOwn returns random events of accounts. The events of an account are in the order of their
// versions.
func drawOwn(random *rand.Rand, accounts, versions int, types []string) ownEvents {
	var all ownEvents
	for version := 1; version <= versions; version++ {
		for _, a := range random.Perm(accounts) {
			all = append(all, ownEvent{
				account: fmt.Sprintf("acc-%d", a), version: version, kind: types[random.IntN(len(types))],
				at: time.Unix(1_767_225_600+int64(random.IntN(200_000)), 0).UTC(), n: random.IntN(1000),
			})
		}
	}
	return all
}

// record returns the event as a record. An AccountClosed event has no data. The data of the other
// events has more fields than the file uses.
func (e *ownEvent) record(partitions int32) testbank.Record {
	account, _ := strconv.Atoi(e.account[len("acc-"):])
	event := map[string]any{
		"eventId": fmt.Sprintf("%s-%d", e.account, e.version), "eventType": e.kind, "accountId": e.account, "version": e.version,
		"occurredAt": e.at.Format(time.RFC3339),
	}
	if e.kind != "AccountClosed" {
		event["data"] = map[string]any{
			"points": e.n, "street": fmt.Sprintf("%d Straße", e.n), "city": "Ort \" " + e.account, "country": "DE", "amount": strconv.Itoa(e.n),
			"more": []any{nil, map[string]any{"x": 1.5}},
		}
	}
	value, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	return testbank.Record{Key: []byte(e.account), Value: value, Partition: int32(account) % partitions} //nolint:gosec // G115: small
}

// stream returns the events in the order in which they arrive. Some events are late, so later
// versions wait for them. Some events arrive twice.
func (all ownEvents) stream(random *rand.Rand, partitions int32) []testbank.Record {
	var records []testbank.Record
	insert := func(at int, r testbank.Record) {
		records = slices.Insert(records, max(0, min(at, len(records))), r)
	}
	for i := range all {
		r := all[i].record(partitions)
		at := len(records)
		if random.IntN(20) == 0 {
			at -= random.IntN(300) // the event arrives after up to 300 later events
		}
		insert(at, r)
		if random.IntN(10) == 0 {
			insert(len(records)-random.IntN(200)+100, r)
		}
	}
	for range len(all) / 10 {
		records = append(records, all[random.IntN(len(all))].record(partitions))
	}
	return records
}

func (all ownEvents) loyalty() map[string]string {
	points, versions := map[string]int{}, map[string]int{}
	for _, e := range all {
		switch e.kind {
		case "PointsEarned":
			points[e.account] += e.n
		case "PointsSpent":
			points[e.account] -= e.n
		default:
			continue
		}
		versions[e.account] = e.version
	}
	rows := map[string]string{}
	for account, version := range versions {
		rows[account] = fmt.Sprintf("%d %d", points[account], version)
	}
	return rows
}

func (all ownEvents) counts() map[string]string {
	counts, last := map[string]int{}, map[string]int64{}
	for _, e := range all {
		if e.kind != "CardIssued" {
			counts[e.account]++
			last[e.account] = max(last[e.account], e.at.Unix())
		}
	}
	rows := map[string]string{}
	for account, n := range counts {
		rows[account] = fmt.Sprintf("%d %d", n, last[account])
	}
	return rows
}

func (all ownEvents) addresses() map[string]string {
	rows := map[string]string{}
	for _, e := range all {
		switch e.kind {
		case "AddressChanged":
			rows[e.account] = fmt.Sprintf("%d Straße|Ort \" %s|DE|%d", e.n, e.account, e.at.Unix())
		case "AddressRemoved":
			delete(rows, e.account)
		}
	}
	return rows
}

func (all ownEvents) frauds() map[string]string {
	type key struct {
		hour int64
		kind string
	}
	events, amounts := map[key]int{}, map[key]int{}
	for _, e := range all {
		if e.kind != "LoginSucceeded" {
			k := key{e.at.Unix() / 3600 * 3600, e.kind}
			events[k]++
			amounts[k] += e.n
		}
	}
	rows := map[string]string{}
	for k, n := range events {
		rows[fmt.Sprintf("%d %s", k.hour, k.kind)] = fmt.Sprintf("%d %d", n, amounts[k])
	}
	return rows
}

// TestExamplesOfOwnProjections runs each file of docs/examples on a stream with gaps and
// duplicates. It runs two replicas and kills one of them. Then all records are read again.
func TestExamplesOfOwnProjections(t *testing.T) {
	t.Parallel()
	tables, err := os.ReadFile("../docs/examples/tables.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, example := range examples {
		t.Run(example.file, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 4)
			w.exec(string(tables))
			random := random(seed(t))
			events := drawOwn(random, 40, 40, example.types)
			records := events.stream(random, w.partitions)
			b := book{query: example.query, want: func([]testbank.Record) map[string]string { return example.want(events) }}
			file := "--projection-file=../docs/examples/" + example.file
			total := int64(len(records))

			first := w.start(file)
			finish := w.feed(records, len(records)/50, 10*time.Millisecond)
			await(t, "the first alone", w.passed(total/4))
			second := w.start(file)
			await(t, "the second has partitions", second.Logged("partitions assigned"))
			first.Kill()
			w.evict()
			finish()
			await(t, "every record consumed", w.arrived)
			await(t, "the table is the oracle's", w.differs(b, nil))
			second.terminate()

			w.rewind()
			again := w.start(file)
			await(t, "everything read again", again.consumed(total))
			await(t, "ready", again.Answers("/readyz", 200, ""))
			again.terminate()
			if wrong := w.differs(b, nil)(); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}
