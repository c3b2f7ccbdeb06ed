package mapping_test

import (
	"strconv"
	"strings"
	"testing"

	"projector/projection/event"
)

// posting is a mapping for a record that contains one entry for each account.
const posting = `
envelope: {entries: lines}
eventTypes: {D: FundsDebited, C: FundsCredited, N: ignored}
fields:
  eventId: {outer: id}
  occurredAt: {outer: at, unit: ms}
  correlationId: {outer: ref}
  accountId: account
  version: seq
  eventType: side
  data: ""
  amount: {path: cents, unit: minor}
  currency: {constant: EUR}
`

func line(account string, version int, side, cents string) string {
	return `{"account":"` + account + `","seq":` + strconv.Itoa(version) + `,"side":"` + side + `","cents":` + cents + `}`
}

func lines(list ...string) string { return "[" + strings.Join(list, ",") + "]" }

func postingOf(entries string) string {
	return `{"id":"P1","at":1767225600000,"ref":"r","lines":` + entries + `,"note":"n"}`
}

// decodedEach returns one text for each event of a message, with the entry's number, event id,
// account, version and content.
func decodedEach(f event.Format, m event.Message) []string {
	var all []*event.Decoded
	var numbers []int32
	event.DecodeEach(f, m, func(entry int32) *event.Decoded {
		all, numbers = append(all, &event.Decoded{Skip: true}), append(numbers, entry)
		return all[len(all)-1]
	})
	texts := make([]string, len(all))
	for i, d := range all {
		texts[i] = strconv.Itoa(int(numbers[i])) + " " + decoded(d)
		if d.Tombstone {
			texts[i] = strconv.Itoa(int(numbers[i])) + " tombstone"
		}
		if d.Identity == event.Identified {
			texts[i] += " " + d.Event.ID + " " + d.Event.AccountID + "@" + strconv.FormatInt(d.Event.Version, 10)
		}
	}
	return texts
}

func TestSeries(t *testing.T) {
	const (
		whole   = "0 malformed_payload lines"
		escaped = "envelope: {path: payload, escaped: true, entries: lines}\nfields: {eventId: {outer: id}}"
		all     = "envelope: {entries: \"\"}"
	)
	one, two := line("a", 1, "D", "1050"), line("b", 7, "C", "1050")
	inner := func(version int) string {
		return strings.Replace(innerEvent, `"version":1`, `"version":`+strconv.Itoa(version), 1)
	}
	for name, tt := range map[string]struct {
		mapping, value string
		want           []string
	}{
		"two":           {posting, postingOf(lines(one, two)), []string{"1 FundsDebited 10.50 EUR P1/0 a@1", "2 FundsCredited 10.50 EUR P1/1 b@7"}},
		"one":           {posting, postingOf(lines(one)), []string{"1 FundsDebited 10.50 EUR P1/0 a@1"}},
		"white space":   {posting, postingOf(" [ \n" + one + " ,\t" + two + "\r]"), []string{"1 FundsDebited 10.50 EUR P1/0 a@1", "2 FundsCredited 10.50 EUR P1/1 b@7"}},
		"a broken one":  {posting, postingOf(lines(one, line("b", 7, "C", `1.5`), two)), []string{"1 FundsDebited 10.50 EUR P1/0 a@1", "2 invalid_amount lines[].cents P1/1 b@7", "3 FundsCredited 10.50 EUR P1/2 b@7"}},
		"not objects":   {posting, postingOf(lines("5", "null", `"x"`, "[]", one)), []string{"1 malformed_payload lines[]", "2 malformed_payload lines[]", "3 malformed_payload lines[]", "4 malformed_payload lines[]", "5 FundsDebited 10.50 EUR P1/4 a@1"}},
		"no account":    {posting, postingOf(lines(`{"seq":1}`)), []string{"1 malformed_payload lines[].account"}},
		"other type":    {posting, postingOf(lines(line("a", 1, "X", "1"))), []string{"1 unknown_event_type lines[].side P1/0 a@1"}},
		"ignored":       {posting, postingOf(lines(line("a", 1, "N", "1"), `{"side":"N"}`)), []string{"1 ignored P1/0 a@1", "2 ignored"}},
		"empty":         {posting, postingOf("[]"), []string{whole}},
		"null":          {posting, postingOf("null"), []string{whole}},
		"absent":        {posting, `{"id":"P1"}`, []string{whole}},
		"an object":     {posting, postingOf(one), []string{whole}},
		"a text":        {posting, postingOf(`"[]"`), []string{whole}},
		"a number":      {posting, postingOf("7"), []string{whole}},
		"no id":         {posting, strings.Replace(postingOf(lines(one)), `"id":"P1"`, `"id":7`, 1), []string{"1 malformed_payload id"}},
		"an empty id":   {posting, strings.Replace(postingOf(lines(one)), `"id":"P1"`, `"id":""`, 1), []string{"1 malformed_payload id"}},
		"a long id":     {posting, strings.Replace(postingOf(lines(one)), "P1", strings.Repeat("i", 199), 1), []string{"1 malformed_payload id"}},
		"broken":        {posting, `{"id":"P1","lines":[` + one + `,]}`, []string{"0 malformed_payload "}},
		"never closed":  {posting, `{"id":"P1","lines":[` + one, []string{"0 malformed_payload "}},
		"a key twice":   {posting, postingOf(lines(one, `{"account":"b","account":"c"}`)), []string{"0 malformed_payload "}},
		"the key twice": {posting, `{"id":"P1","lines":` + lines(one) + `,"lines":` + lines(two) + `}`, []string{"0 malformed_payload "}},
		"not UTF-8":     {posting, postingOf(lines(one, "{\"account\":\"\xff\"}")), []string{"0 malformed_payload "}},

		"a path into an array":  {strings.Replace(posting, "entries: lines", "entries: lines.x", 1), postingOf(lines(one)), []string{"0 malformed_payload lines.x"}},
		"an array in an entry":  {strings.Replace(posting, "version: seq", "version: list.seq", 1), postingOf(lines(`{"account":"a","list":[{"seq":1}],"side":"C","cents":1}`)), []string{"1 malformed_payload lines[].list.seq"}},
		"the sign decides":      {strings.Replace(strings.Replace(posting, "side", "{constant: m}", 1), "{D:", "{m: {negative: FundsDebited, positive: FundsCredited, zero: ignored}, D:", 1), postingOf(lines(line("a", 1, "", "-7"), line("b", 1, "", "7"), line("c", 1, "", "0"))), []string{"1 FundsDebited 0.07 EUR P1/0 a@1", "2 FundsCredited 0.07 EUR P1/1 b@1", "3 ignored P1/2 c@1"}},
		"escaped":               {escaped, `{"id":"P2","payload":` + escapedJSON(`{"lines":`+lines(inner(1), inner(2))+`}`) + `}`, []string{"1 FundsCredited 1.00 EUR P2/0 a@1", "2 FundsCredited 1.00 EUR P2/1 a@2"}},
		"escaped, all of it":    {strings.Replace(escaped, "lines", `""`, 1), `{"id":"P2","payload":` + escapedJSON(lines(inner(1))) + `}`, []string{"1 FundsCredited 1.00 EUR P2/0 a@1"}},
		"escaped, broken":       {escaped, `{"id":"P2","payload":"{\"lines\":["}`, []string{"0 malformed_payload payload"}},
		"escaped, more follows": {strings.Replace(escaped, "lines", `""`, 1), `{"id":"P2","payload":"[{}] x"}`, []string{"0 malformed_payload payload"}},
		"escaped, null":         {escaped, `{"id":"P2","payload":"{\"lines\":null}"}`, []string{"0 malformed_payload payload.lines"}},
		"escaped, none":         {escaped, `{"id":"P2","payload":"{}"}`, []string{"0 malformed_payload payload.lines"}},
		"the whole value":       {all, " " + lines(inner(1), inner(2)) + "\n", []string{"1 FundsCredited 1.00 EUR e/0 a@1", "2 FundsCredited 1.00 EUR e/1 a@2"}},
		"the value, broken":     {all, "[{]", []string{"0 malformed_payload "}},
		"the value, framed": { // by a serializer for JSON Schema
			all, "\x00\x00\x00\x00\x07" + lines(inner(1)), []string{"1 FundsCredited 1.00 EUR e/0 a@1"},
		},
		"the value, a key twice": {
			all, `[{"a":1,"a":2}]`, []string{"0 malformed_payload "},
		},
		"the value, more follows": {all, lines(inner(1)) + "x", []string{"0 malformed_payload "}},
		"the value, an object":    {all, innerEvent, []string{"0 malformed_payload "}},
		"the value, nothing":      {all, "", []string{"0 malformed_payload "}},
	} {
		m := message(tt.value)
		f := formatOf(t, "json", tt.mapping)
		if got := strings.Join(decodedEach(f, m), " | "); got != strings.Join(tt.want, " | ") {
			t.Errorf("%s:\n got %s\nwant %s", name, got, strings.Join(tt.want, " | "))
		}
		for _, want := range tt.want { // each entry is decoded alone by its number
			number, rest, _ := strings.Cut(want, " ")
			entry, _ := strconv.ParseInt(number, 10, 32)
			var d event.Decoded
			m.Entry = int32(entry)
			if f.Decode(m, &d); entry > 0 && !strings.HasPrefix(rest, decoded(&d)) {
				t.Errorf("%s: entry %d is %s, want %s", name, entry, decoded(&d), rest)
			}
		}
	}
}

func message(value string) event.Message { return event.Message{Value: []byte(value)} }

func TestSeriesOfOtherFormats(t *testing.T) {
	header := func(key, value string) event.Header { return event.Header{Key: key, Value: []byte(value)} }
	const cloud = "envelope: {path: data, entries: lines}\neventTypes: {D: FundsDebited, C: FundsCredited}\n" +
		"fields: {accountId: {path: account}, version: seq, eventType: side, data: \"\", amount: {path: cents, unit: minor}, currency: {constant: EUR}}"
	const attributes = `{"specversion":"1.0","id":"C","type":"PostingBooked","time":"2026-01-01T00:00:00Z","data":`
	binary := []event.Header{header("ce_specversion", "1.0"), header("ce_id", "C"), header("ce_time", "2026-01-01T00:00:00Z"), header("ce_type", "PostingBooked")}
	entries := lines(line("a", 1, "D", "1"), line("b", 1, "C", "1"))
	for name, tt := range map[string]struct {
		format, mapping string
		m               event.Message
		want            string
	}{
		"outbox": {
			"debezium-outbox", strings.Replace(posting, "eventId: {outer: id}", "eventId: {header: id}", 1),
			event.Message{Key: []byte("P1"), Value: []byte(escapedJSON(postingOf(lines(line("a", 1, "D", "1"), line("b", 1, "C", "1"))))), Headers: []event.Header{header("id", "H")}},
			"1 FundsDebited 0.01 EUR H/0 a@1 | 2 FundsCredited 0.01 EUR H/1 b@1",
		},
		"outbox, no payload": {
			"debezium-outbox", posting,
			event.Message{Key: []byte("P1"), Value: []byte("null"), Headers: []event.Header{header("id", "H")}},
			"0 malformed_payload payload.id",
		},
		"structured": {
			"cloudevents", cloud,
			event.Message{Value: []byte(attributes + `{"lines":` + entries + `}}`), Headers: structuredHeader},
			"1 FundsDebited 0.01 EUR C/0 a@1 | 2 FundsCredited 0.01 EUR C/1 b@1",
		},
		"structured, data is the array": {
			"cloudevents", strings.Replace(cloud, "entries: lines", `entries: ""`, 1),
			event.Message{Value: []byte(attributes + entries + `}`), Headers: structuredHeader},
			"1 FundsDebited 0.01 EUR C/0 a@1 | 2 FundsCredited 0.01 EUR C/1 b@1",
		},
		"structured, no data": {"cloudevents", cloud, event.Message{Value: []byte(attributes + `null}`), Headers: structuredHeader}, "0 malformed_payload data.lines"},
		"structured in Base64": {
			"cloudevents", cloud,
			event.Message{Value: []byte(strings.Replace(attributes, `"data"`, `"data_base64"`, 1) + `"e30="}`), Headers: structuredHeader},
			"0 malformed_payload data.lines",
		},
		"binary": {
			"cloudevents", cloud,
			event.Message{Value: []byte(`{"lines":` + entries + `}`), Headers: binary},
			"1 FundsDebited 0.01 EUR C/0 a@1 | 2 FundsCredited 0.01 EUR C/1 b@1",
		},
		"binary, the value is the array": {
			"cloudevents", strings.Replace(cloud, "entries: lines", `entries: ""`, 1),
			event.Message{Value: []byte(entries), Headers: binary},
			"1 FundsDebited 0.01 EUR C/0 a@1 | 2 FundsCredited 0.01 EUR C/1 b@1",
		},
		"binary, no data":     {"cloudevents", cloud, event.Message{Value: []byte{}, Headers: binary}, "0 malformed_payload data.lines"},
		"binary, null":        {"cloudevents", cloud, event.Message{Value: []byte("null"), Headers: binary}, "0 malformed_payload data.lines"},
		"outbox, a tombstone": {"debezium-outbox", posting, event.Message{Key: []byte("P1")}, "0 tombstone"},
	} {
		if got := strings.Join(decodedEach(formatOf(t, tt.format, tt.mapping), tt.m), " | "); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
		}
	}
}

// A message with too many entries becomes a single dead letter.
func TestASeriesHasALimit(t *testing.T) {
	f := formatOf(t, "json", posting)
	for n, want := range map[int]int{event.MostEntries: event.MostEntries, event.MostEntries + 1: 1, 100_000: 1} {
		list := make([]string, n)
		for i := range list {
			list[i] = line("a", i, "C", "1")
		}
		got := decodedEach(f, message(postingOf(lines(list...))))
		if len(got) != want || want == 1 && got[0] != "0 malformed_payload lines" {
			t.Errorf("%d entries: %d events, the first is %s", n, len(got), got[0])
		}
	}
}

// For a record with several events, Decode needs the number of the entry.
func TestAnEntryIsNamed(t *testing.T) {
	f := formatOf(t, "json", posting)
	m := message(postingOf(lines(line("a", 1, "D", "1"))))
	for entry, want := range map[int32]string{0: "does not say which is meant", 1: "", 2: "has no entry of this number", -1: "does not say"} {
		var d event.Decoded
		m.Entry = entry
		f.Decode(m, &d)
		if (d.Fault == nil) != (want == "") || d.Fault != nil && !strings.Contains(d.Fault.Error(), want) {
			t.Errorf("entry %d: %v, want %q", entry, d.Fault, want)
		}
		faults := 0
		for _, field := range event.Explain(f, m) {
			if field.Fault != nil {
				faults++
			}
		}
		if (faults == 0) != (want == "") {
			t.Errorf("entry %d: %d faults", entry, faults)
		}
	}
	var d event.Decoded
	m.Value = nil
	if f.Decode(m, &d); !d.Tombstone {
		t.Error("a tombstone is an event")
	}
}
