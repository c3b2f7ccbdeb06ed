package mapping_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"projector/internal/mapping"
	"projector/projection/event"
)

// A name of several words is recognised by its last words. Fields in Debezium's source block are
// not proposed. Unused fields are listed.
func TestSuggestNamesOfOtherProducers(t *testing.T) {
	for value, want := range map[string]string{
		`{"event_uuid":"a","wallet":"w","wallet_seq":1,"event_name":"card.captured","happened_at_ms":1764003661000,"amount_minor":5,"currency":"GBP","merchant_name":"m","trace_id":"t"}`: `eventId: event_uuid
			accountId: wallet
			version: wallet_seq
			eventType: event_name
			occurredAt: {path: happened_at_ms, unit: ms}
			amount: {path: amount_minor, unit: minor}
			# Not used: merchant_name`,
		`{"Ntry":{"NtryRef":"N","ValDt":{"Dt":"2026-02-03"},"Pstgs":[{"Acct":{"Id":{"IBAN":"DE"}},"CdtDbtInd":"DBIT","Amt":{"value":"1.00","Ccy":"EUR"},"SeqNb":1}]},` +
			`"GrpHdr":{"MsgId":"M","CreDtTm":"2026-02-03T08:30:00+01:00"}}`: `envelope: {entries: Ntry.Pstgs}
			eventId: {outer: GrpHdr.MsgId}
			accountId: Acct.Id.IBAN
			version: SeqNb
			eventType: CdtDbtInd
			occurredAt: {outer: GrpHdr.CreDtTm}
			amount: Amt.value
			# Not used: {outer: Ntry.NtryRef}, {outer: Ntry.ValDt.Dt}`,
		`{"before":null,"after":{"txn_id":1,"account_no":771,"branch":"0230","line_no":1,"amount":-1.5,"ccy":"CHF","posted_at":1764003601000000},` +
			`"source":{"connector":"postgresql","version":"3.0","sequence":"[1]","ts_ms":1764003600101},"op":"c","ts_ms":1764003600201}`: `eventId: {path: after.txn_id, type: integer}
			accountId: {path: after.account_no, type: integer}
			version: after.line_no
			occurredAt: {path: after.posted_at, unit: us}
			{join: [after.branch, {path: after.account_no, type: integer}], with: "/"}
			# Not used: after.branch, ts_ms`,
		`{"schema":{"type":"struct","fields":[{"type":"int64","field":"id"}]},"payload":{"before":{"id":1},"after":{"id":1,"kind":"fee"},` +
			`"source":{"connector":"mysql","version":"3.0"},"op":"u","ts_ms":1764003600201}}`: `eventId: {path: payload.after.id, type: integer}
			eventType: payload.after.kind
			occurredAt: {path: payload.ts_ms, unit: ms}
			# Not used: payload.op`,
		`{"ts_ms":1764003600201}`: `occurredAt: {path: ts_ms, unit: ms}`,
		`{"created":true}`:        `# occurredAt: PATH`,
	} {
		var s mapping.Samples
		s.Add(event.Message{Value: []byte(value)})
		text, _ := s.Suggest(false)
		for line := range strings.Lines(want) {
			if line = strings.TrimSpace(line); !strings.Contains(text, line+"\n") {
				t.Errorf("no line ends with %q:\n%s", line, text)
			}
		}
	}
}

// A person must confirm most proposals that are not based on a known name. The time at which a
// connector read the row is used only if there is no other time.
func TestSuggestWithoutKnownNames(t *testing.T) {
	for name, tt := range map[string]struct {
		values []string
		want   []string // lines of the proposal
		not    string
	}{
		"the row's time": {
			[]string{`{"before":null,"after":{"id":1,"occurred":1764003601000000},"source":{"connector":"postgresql"},"op":"c","ts_ms":1764003600201}`},
			[]string{"occurredAt: {path: after.occurred, unit: us}", "c: DECIDE", "r: DECIDE", "# DECIDE op: r is a row that Debezium's snapshot has read"},
			"u: ",
		},
		"only the connector's time": {[]string{`{"id":1,"ts_ms":1764003600201}`}, []string{"# DECIDE occurredAt: a connector read the row at ts_ms"}, ""},
		"changed rows, by sign": {
			[]string{`{"id":1,"op":"u","amount":-1}`}, []string{"u: DECIDE", "# DECIDE u: Debezium writes it"}, "u: {positive",
		},
		"the outer number": {
			[]string{
				`{"postingNo":"P1","text":"x","lines":[{"account":"A","lineNo":1,"amount":"1.00"},{"account":"B","lineNo":2,"amount":"1.00"}]}`,
				`{"postingNo":"P2","text":"x","lines":[{"account":"A","lineNo":3,"amount":"1.00"},{"account":"B","lineNo":4,"amount":"1.00"}]}`,
			},
			[]string{"eventId: {outer: postingNo}", "# DECIDE eventId: postingNo is different in each record"},
			"",
		},
		"a number": {
			[]string{`{"docNr":1,"iban":"A"}`, `{"docNr":2,"iban":"B"}`}, []string{"eventId: {path: docNr, type: integer}", "accountId: iban"}, "",
		},
		"a uid":                       {[]string{`{"uid":"x","iban":"A"}`}, []string{"eventId: uid"}, ""},
		"a uid next to a reference":   {[]string{`{"uid":"x","posting_ref":"r","iban":"A"}`}, []string{"eventId: posting_ref"}, ""},
		"a number that is not unique": {[]string{`{"docNr":1}`, `{"docNr":1}`}, []string{"# eventId: PATH"}, ""},
		"an account in two parts": {
			[]string{`{"id":"x","acct":{"nr":4711,"bank":"017","currency":"EUR"}}`},
			[]string{`accountId: {join: [acct.bank, {path: acct.nr, type: integer}], with: "/"}`, "# DECIDE accountId: are all of these parts"},
			"key: true",
		},
		"an account object": {[]string{`{"account":{"id":"A"},"id":"x"}`}, []string{"eventId: id", "accountId: account.id"}, "key: true"},
		"an account alone":  {[]string{`{"account":{"id":"A"}}`}, []string{"# eventId: PATH", "accountId: account.id"}, ""},
		"the key":           {[]string{`{"id":"x"}`}, []string{"accountId: {key: true}", "# DECIDE accountId: is the record's key the account's id? If it is put together"}, ""},
	} {
		var s mapping.Samples
		for _, value := range tt.values {
			s.Add(event.Message{Key: []byte("k"), Value: []byte(value)})
		}
		text, _ := s.Suggest(false)
		for _, want := range tt.want {
			if !strings.Contains(text, "  "+want) {
				t.Errorf("%s: no line begins with %q:\n%s", name, want, text)
			}
		}
		if tt.not != "" && strings.Contains(text, tt.not) {
			t.Errorf("%s: has %q:\n%s", name, tt.not, text)
		}
	}
}

// A field is not proposed as the event id if one of its first values repeats, even if it repeats
// only after many records.
func TestSuggestAnEventIDOfManyRecords(t *testing.T) {
	for name, tt := range map[string]struct {
		number func(i int) int
		want   string
	}{
		"different":     {func(i int) int { return i }, "eventId: {path: docNr, type: integer}"},
		"soon repeated": {func(i int) int { return max(1, i) }, "# eventId: PATH"},
		"late repeated": {func(i int) int { return i % 29 }, "# eventId: PATH"},
	} {
		var s mapping.Samples
		for i := range 30 {
			s.Add(event.Message{Value: fmt.Appendf(nil, `{"docNr":%d}`, tt.number(i))})
		}
		if text, _ := s.Suggest(false); !strings.Contains(text, "  "+tt.want) {
			t.Errorf("%s: no line begins with %q:\n%s", name, tt.want, text)
		}
	}
}

// A member whose name has no letter or digit is not proposed.
func TestSuggestMembersWithoutAWord(t *testing.T) {
	var s mapping.Samples
	for _, value := range []string{`{"_":1,"-":"a"," ":"b","c":{"_":1}}`, `{"_":2,"-":"b"," ":"c","c":{"_":2}}`} {
		s.Add(event.Message{Value: []byte(value)})
	}
	if text, _ := s.Suggest(false); !strings.Contains(text, "# eventId: PATH") {
		t.Errorf("an event id was found:\n%s", text)
	}
}

func TestSuggest(t *testing.T) {
	var s mapping.Samples
	for _, value := range []string{
		`{"meta":{"id":"m-1","type":"movement","seq":0,"ts":1767225600123},"payload":{"acct":"K9","amount":1050,"ccy":"eur"}}`,
		`{"meta":{"id":"m-2","type":"movement","seq":1,"ts":1767225600456},"payload":{"acct":"K9","amount":-250,"ccy":"eur"}}`,
	} {
		s.Add(event.Message{Value: []byte(value)})
	}
	text, decide := s.Suggest(false)
	f := formatOf(t, event.FormatJSON, text)
	var d event.Decoded
	f.Decode(event.Message{Value: []byte(`{"meta":{"id":"m-3","type":"movement","seq":2,"ts":1767225600789},"payload":{"acct":"K9","amount":-10,"ccy":"eur"}}`)}, &d)
	if got := decoded(&d); got != "FundsDebited 0.10 EUR" || d.Event.AccountID != "K9" || d.Event.Version != 2 || d.Event.ID != "m-3" {
		t.Errorf("%s, %+v, of\n%s", got, d.Event, text)
	}
	for _, want := range []string{"DECIDE amount: it is an integer", "DECIDE version", "DECIDE occurredAt"} {
		if !strings.Contains(text, want) {
			t.Errorf("does not say %q:\n%s", want, text)
		}
	}
	if len(decide) < 4 {
		t.Errorf("to decide: %q", decide)
	}

	// A value that does not look like a type name is printed only if the payload may be printed.
	var private mapping.Samples
	for _, kind := range []string{"DEPOSIT", "John Smith", "DE89370400440532013000", "a@b.example", "4711"} {
		private.Add(event.Message{Value: []byte(`{"type":"` + kind + `"}`)})
	}
	text, _ = private.Suggest(false)
	all, _ := private.Suggest(true)
	if !strings.Contains(text, "DEPOSIT: DECIDE") || !strings.Contains(text, "DECIDE 4 values") || !strings.Contains(all, "John Smith") {
		t.Errorf("%s\n%s", text, all)
	}
	for _, value := range []string{"Smith", "DE89", "b.example", "4711"} {
		if strings.Contains(text, value) {
			t.Errorf("prints %s:\n%s", value, text)
		}
	}

	var none mapping.Samples
	none.Add(event.Message{Value: []byte("\x00avro")})
	if text, decide := none.Suggest(false); len(decide) < 5 || !strings.Contains(text, "# version: PATH") {
		t.Errorf("of nothing: %q\n%s", decide, text)
	}
}

// TestSuggestWhatTheSamplesSay expects that a type without amounts is not proposed as one that moves
// money, and that zero amounts are not refused without a decision.
func TestSuggestWhatTheSamplesSay(t *testing.T) {
	value, err := os.ReadFile("../../docs/examples/mappings/card-processor.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var s mapping.Samples
	for line := range strings.Lines(string(value)) {
		s.Add(event.Message{Value: []byte(line)})
	}
	text, decide := s.Suggest(false)
	for _, want := range []string{"  card_issued: DECIDE\n", "  movement: {positive: FundsCredited, negative: FundsDebited, zero: DECIDE}\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
	for _, want := range []string{"card_issued: none of its 1 samples has an amount", "movement: 1 of its 5 samples have the amount 0"} {
		if !strings.Contains(strings.Join(decide, "\n"), want) {
			t.Errorf("to decide: %q, without %q", decide, want)
		}
	}
	if _, err := mapping.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "zero") {
		t.Errorf("undecided: %v of\n%s", err, text)
	}
	if _, err := mapping.Parse([]byte(strings.ReplaceAll(text, ": DECIDE", ": ignored"))); err != nil {
		t.Errorf("once decided: %v", err)
	}

	var named mapping.Samples
	named.Add(event.Message{Value: []byte(`{"type":"FundsCredited","amount":null}`)})
	named.Add(event.Message{Value: []byte(`{"type":"FundsDebited","amount":"1.00"}`)})
	if text, _ := named.Suggest(false); !strings.Contains(text, "FundsCredited: DECIDE") || !strings.Contains(text, "FundsDebited: FundsDebited") {
		t.Error(text)
	}
}

// TestSuggestOnlyWhatIsSure expects a decision where the samples do not show how amounts, times and
// currencies are to be read.
func TestSuggestOnlyWhatIsSure(t *testing.T) {
	for name, tt := range map[string]struct {
		values []string
		want   []string
		not    string
	}{
		"a debit above zero and a reversed credit": {
			[]string{`{"type":"CREDIT","amount":-10.25}`, `{"type":"DEBIT","amount":10.25}`, `{"type":"FEE","amount":-1.00}`},
			[]string{"CREDIT: {positive: FundsCredited, negative: FundsDebited, zero: refused}", "DEBIT: DECIDE", "# DECIDE DEBIT: 1 of its 1 samples are above zero", "FEE: {positive"},
			"DEBIT: {positive: FundsCredited",
		},
		"both signs and another type": {
			[]string{`{"type":"DEBIT","amount":-10.25}`, `{"type":"DEBIT","amount":10.25}`, `{"type":"CREDIT","amount":1}`},
			[]string{"DEBIT: DECIDE", "CREDIT: DECIDE"},
			"T: {positive",
		},
		"one type with amounts": {
			[]string{`{"type":"move","amount":-10.25}`, `{"type":"move","amount":10.25}`, `{"type":"open"}`},
			[]string{"move: {positive: FundsCredited, negative: FundsDebited, zero: refused}", "open: DECIDE"},
			"move: DECIDE",
		},
		"units and nanos": {
			[]string{`{"price":{"units":"10","nanos":250000000,"currencyCode":"EUR"}}`, `{"price":{"units":"10","currencyCode":"EUR"}}`},
			[]string{"amount: {units: price.units, nanos: price.nanos}", "currency: price.currencyCode"},
			"# Not used",
		},
		"Base64":               {[]string{`{"amount":"BAE="}`}, []string{"amount: amount", "# DECIDE amount: not all are decimal numbers such as 10.25", "decimal.handling.mode"}, "1050"},
		"decimal texts":        {[]string{`{"amount":"-10.25"}`}, []string{"amount: amount"}, "not all"},
		"padded decimals":      {[]string{`{"amount":"10.2500"}`}, []string{"amount: {path: amount, zeros: dropped}"}, "DECIDE amount"},
		"padded numbers":       {[]string{`{"amount":10.2500}`}, []string{"amount: {path: amount, type: number, zeros: dropped}"}, "minor"},
		"seconds with a point": {[]string{`{"ts":1767225600.123000000}`, `{"ts":1767225601}`}, []string{"occurredAt: {path: ts, unit: s.fraction}"}, "DECIDE occurredAt"},
		"a Julian day":         {[]string{`{"ts":2461041.25}`}, []string{"# DECIDE occurredAt: not all are integers"}, "unit: "},
		"a time with a point":  {[]string{`{"ts":1767225600123.5}`}, []string{"# DECIDE occurredAt: not all are integers"}, "unit: "},
		"a time without an offset": {
			[]string{`{"ts":"2026-01-01T00:00:00Z"}`, `{"ts":"2026-01-01T00:00:00"}`},
			[]string{"occurredAt: ts", "# DECIDE occurredAt: not all are RFC 3339"},
			"",
		},
		"a time with an offset": {[]string{`{"ts":"2026-01-01T00:00:00.5+01:00"}`}, []string{"occurredAt: ts"}, "DECIDE occurredAt"},
		"times that the decoder accepts": {
			[]string{`{"ts":"2026-01-01t00:00:00z"}`, `{"ts":"2026-12-31T23:59:60Z"}`},
			[]string{"occurredAt: ts"},
			"DECIDE occurredAt",
		},
		"times that only Go accepts": {
			[]string{`{"ts":"2026-01-01T00:00:00,5Z"}`},
			[]string{"occurredAt: ts", "# DECIDE occurredAt: not all are RFC 3339"},
			"unit: ",
		},
		"a numeric code":       {[]string{`{"ccy":"978"}`, `{"ccy":"036"}`}, []string{"currency: {path: ccy, code: numeric}"}, "DECIDE currency"},
		"an integer as code":   {[]string{`{"ccy":978}`, `{"ccy":36}`}, []string{"currency: {path: ccy, code: numeric, type: integer}"}, "DECIDE currency"},
		"a code without zeros": {[]string{`{"ccy":"978"}`, `{"ccy":"36"}`}, []string{"currency: ccy", "# DECIDE currency: not all are codes"}, "numeric"},
		"text and integer":     {[]string{`{"ccy":"978"}`, `{"ccy":392}`}, []string{"currency: {constant: DECIDE}", "# Not used: ccy"}, "numeric"},
		"no numeric code":      {[]string{`{"ccy":"978"}`, `{"ccy":"979"}`, `{"ccy":"000"}`}, []string{"currency: ccy", "# DECIDE currency: not all are codes"}, "lower"},
		"escaped JSON":         {[]string{`{"id":"a","body":"{\"account\":\"A\"}"}`}, []string{"# DECIDE body is a text that holds JSON", "envelope: {path: body, escaped: true}"}, ""},
		"a currency":           {[]string{`{"ccy":"EUR"}`, `{"ccy":null}`}, []string{"currency: ccy"}, "DECIDE currency"},
	} {
		var s mapping.Samples
		for _, value := range tt.values {
			s.Add(event.Message{Value: []byte(value)})
		}
		text, _ := s.Suggest(false)
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: does not have %q:\n%s", name, want, text)
			}
		}
		if tt.not != "" && strings.Contains(text, tt.not) {
			t.Errorf("%s: has %q:\n%s", name, tt.not, text)
		}
	}
}

// In a proposal for CloudEvents, attributes have names without points, and the paths of amount and
// currency begin in the data.
func TestSuggestForCloudEvents(t *testing.T) {
	const data = `{"wallet":"w-1","amt":"10.25","ccy":"EUR"}`
	structured := event.Message{
		Headers: structuredHeader,
		Value:   []byte(`{"specversion":"1.0","id":"e-1","source":"s","type":"deposit","time":"2026-01-01T00:00:00Z","seqno":17,"data":` + data + `}`),
	}
	binary := event.Message{Value: []byte(data)}
	for name, value := range map[string]string{
		"specversion": "1.0", "id": "e-1", "source": "s", "type": "deposit", "time": "2026-01-01T00:00:00Z", "seqno": "17",
	} {
		binary.Headers = append(binary.Headers, event.Header{Key: "ce_" + name, Value: []byte(value)})
	}
	var outside mapping.Samples
	outside.CloudEvents = true
	outside.Add(event.Message{Headers: structuredHeader, Value: []byte(`{"specversion":"1.0","id":"e-1","amount":"10.25","data":{"wallet":"w-1"}}`)})
	if text, _ := outside.Suggest(false); !strings.Contains(text, "# DECIDE amount: amount is an attribute of the CloudEvent") {
		t.Error(text)
	}
	for name, m := range map[string]event.Message{"structured": structured, "binary": binary} {
		s := mapping.Samples{CloudEvents: true}
		s.Add(m)
		text, _ := s.Suggest(false)
		f := formatOf(t, event.FormatCloudEvents, strings.ReplaceAll(text, "deposit: DECIDE", "deposit: FundsCredited"))
		var d event.Decoded
		f.Decode(m, &d)
		if e := d.Event; decoded(&d) != "FundsCredited 10.25 EUR" || e.ID != "e-1" || e.AccountID != "w-1" || e.Version != 17 {
			t.Errorf("%s: %s, %+v, fault %v by\n%s", name, decoded(&d), e, d.Fault, text)
		}
	}
}

// In this record, the account and the amount are in the entries of an array. Other members belong
// to the account id and to the type, and the proposal joins them.
func TestSuggestEntriesAndJoins(t *testing.T) {
	var s mapping.Samples
	const value = `{"id":"P1","bookedAt":"2026-01-01T00:00:00Z","lines":[{"id":5,"bank":"017","account":"A","seq":1,"type":"fee","side":"D","amount":"1.50","ccy":"EUR"}]}`
	s.Add(event.Message{Value: []byte(value)})
	text, decide := s.Suggest(false)
	for _, want := range []string{
		"lines: is each entry", "{join: [bank, account], with: \"/\"}", "{join: [type, side], with: \"/\"}", "of different bank?", "depend on side?",
	} {
		if !strings.Contains(strings.Join(decide, "\n"), want) {
			t.Errorf("to decide: %q, without %q", decide, want)
		}
	}
	f := formatOf(t, event.FormatJSON, strings.ReplaceAll(text, "fee: DECIDE", "fee: FundsDebited"))
	if got := decodedEach(f, message(value)); len(got) != 1 || got[0] != "1 FundsDebited 1.50 EUR P1/0 A@1" {
		t.Errorf("%q by\n%s", got, text)
	}
}

// A proposal is refused as long as a person has not decided the meaning of a type or the currency.
func TestAnUndecidedSuggestionIsRefused(t *testing.T) {
	var s mapping.Samples
	s.Add(event.Message{Value: []byte(`{"id":"a","type":"TXN","legs":[{"account":"A"}]}`)})
	text, decide := s.Suggest(false)
	for _, want := range []string{"legs is an array", "amount: none was found, and each credit and debit needs one; more records may have one (--limit)"} {
		if !strings.Contains(strings.Join(decide, "\n"), want) {
			t.Errorf("to decide: %q, without %q", decide, want)
		}
	}
	if _, err := mapping.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), "DECIDE") {
		t.Errorf("%v of\n%s", err, text)
	}
	text = strings.NewReplacer("TXN: DECIDE", "TXN: FundsCredited", "{constant: DECIDE}", "{constant: EUR}").Replace(text)
	if _, err := mapping.Parse([]byte(text)); err != nil {
		t.Errorf("once decided: %v", err)
	}
}

// For any record, the proposal can be parsed after its open decisions are filled in.
func FuzzSuggest(f *testing.F) {
	f.Add([]byte(`{"id":1,"type":"a\nb: c","amount":"1","ts":"2026-01-01","currency":"EUR","version":"1","account":"x"}`))
	f.Add([]byte(`{"a b":{"ID":"x"},"type":true}`))
	f.Add([]byte("{\"\x7f\":1,\"a\\nb\":[{\"x\":1}],\"c\\n\":\"{}\"}"))
	f.Fuzz(func(t *testing.T, value []byte) {
		var s mapping.Samples
		s.Add(event.Message{Value: value, Headers: []event.Header{{Key: string(value), Value: value}}})
		text, _ := s.Suggest(false)
		text = strings.NewReplacer(": DECIDE", ": ignored", "{constant: DECIDE}", "{constant: EUR}").Replace(text)
		if _, err := mapping.Parse([]byte(text)); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	})
}
