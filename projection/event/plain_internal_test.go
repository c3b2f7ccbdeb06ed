package event

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// FuzzPlain compares the results of scanPlain and of scanAny, which uses jsontext.
func FuzzPlain(f *testing.F) {
	f.Add([]byte(`{"data":{"amount":"1","currency":"EUR"},"a":-0.5e+7,"b":true,"c":null,"version":1,"eventId":""}`))
	f.Add([]byte(`{"data":{"data":{}}, "x":1, "x":2}`))
	f.Add([]byte(`{"more":{"a":1,"abcdef":2,"ab":3},"a":4,"é":5}`))
	f.Add([]byte("{\"\n\":1}"))
	f.Add([]byte("{\"\x00\":1}"))
	f.Add([]byte(`{"a"`))
	f.Fuzz(comparePlain)
}

// otherPlainNames is a mapping with names that are shorter or longer than those of the contract,
// and with some names that JSON must escape.
var otherPlainNames = Mapping{Fields: map[Field]FieldPath{
	FieldEventID: {Path: []string{"more", "a"}}, FieldVersion: {Path: []string{"more", "abcdef"}}, FieldAccountID: {Path: []string{"version"}},
	FieldCorrelationID: {Path: []string{"é"}}, FieldOccurredAt: {Path: []string{"\x00"}}, FieldEventType: {Path: []string{"\n"}},
}}

// comparePlain compares scanPlain and scanAny, with the field names of the contract and with other
// names.
func comparePlain(t *testing.T, value []byte) {
	t.Helper()
	comparePlainBy(t, Mapping{}, value)
	comparePlainBy(t, otherPlainNames, value)
}

func comparePlainBy(t *testing.T, m Mapping, value []byte) {
	t.Helper()
	original := bytes.Clone(value)
	d, err := newDecoder(Options{FirstVersion: 1, Mapping: m}, contractLayout())
	if err != nil {
		t.Fatal(err)
	}
	var plain, general members
	isPlain := scanPlain(value, d.shape, &plain)
	if !bytes.Equal(value, original) {
		t.Fatal("the value was changed")
	}
	if !isPlain {
		for i := range plain {
			if plain[i].raw != nil {
				t.Fatalf("%s: read, although the value is not plain", Field(i))
			}
		}
		return
	}
	var s jsonScanner
	if err := s.scanAny(value, d.shape, &general); err != nil {
		t.Fatalf("%q is taken for plain: %v", value, err)
	}
	for i := range general {
		if !bytes.Equal(plain[i].raw, general[i].raw) || (plain[i].raw == nil) != (general[i].raw == nil) || plain[i].kind != general[i].kind {
			t.Fatalf("%q, %s: %q, by jsontext %q", value, Field(i), plain[i].raw, general[i].raw)
		}
	}
}

// TestPlainDocumentsAreReadAsAny compares scanPlain and scanAny for documents that are put together
// from random parts of events.
func TestPlainDocumentsAreReadAsAny(t *testing.T) {
	pieces := []string{
		"{", "}", "[", "]", ":", ",", " ", "\n", `"`, `\`, `\u0041`, "é", "\x00", "\x7f", "\x80", "0", "-", "1", "17", ".", "5", "e", "E", "+",
		"true", "false", "null", "nul", `"eventId"`, `"version"`, `"data"`, `"amount"`, `"currency"`, `"more"`, `"a"`, `"abcdef"`, `"é"`, "\"\x00\"", "\"\n\"", `"10.25"`, `"a long text of plain letters"`,
		`"eventId":"e"`, `"version":1`, `"data":{`, `"more":`, `,"version":2`, `{"eventId":"e","version":1}`, "\xef\xbb\xbf",
	}
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(rt, "pieces")
		value := strings.Join(words, "")
		comparePlain(t, []byte(value))
		comparePlain(t, []byte(`{"eventId":"e",`+value+`}`))
		comparePlain(t, []byte(`{"data":{`+value+`},"version":1}`))
	})
}

// TestEventsArePlain shows that scanPlain can read the usual events of producers.
func TestEventsArePlain(t *testing.T) {
	d, err := newDecoder(Options{FirstVersion: 1}, contractLayout())
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{
		`{"eventId":"7f9c24e8-3b12","eventType":"FundsCredited","accountId":"acc-00000042","version":17,"occurredAt":"2026-01-01T00:00:00.123Z","correlationId":"c0ffee","data":{"amount":"10.25","currency":"EUR"}}`,
		"{\n  \"version\": 17,\n  \"eventId\": \"e\",\n  \"tenant\": \"bank\",\n  \"attempt\": 1.5e3,\n  \"dry\": false,\n  \"data\": {\"currency\": \"EUR\", \"note\": null}\n}\n",
		`{}`,
	} {
		var found members
		if !scanPlain([]byte(value), d.shape, &found) {
			t.Errorf("%s is not taken for plain", value)
		}
	}
	var found members
	for _, value := range []string{"", "{", `{"version":01}`, `{"version":1,}`, `{"version":1}x`, `{"eventId":"e","eventId":"f"}`, `{"x":1,"x":2}`, `{"a":tru}`, `{"a":1.}`, `{"a":1e}`, `{"a":-}`} {
		if scanPlain([]byte(value), d.shape, &found) {
			t.Errorf("%s is taken for plain", value)
		}
	}
}
