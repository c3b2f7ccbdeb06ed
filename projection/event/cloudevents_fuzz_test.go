package event_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"projector/projection/event"
)

// FuzzCloudEvents compares the result of Decode with that of an independent decoder that uses
// encoding/json.
func FuzzCloudEvents(f *testing.F) {
	for _, m := range readRecords(f, event.FormatCloudEvents) {
		h := headerMap(m)
		f.Add([]byte(h["content-type"]), []byte(h["ce_id"]), []byte(h["ce_subject"]), []byte(h["ce_type"]), []byte(h["ce_sequence"]),
			[]byte(h["ce_time"]), m.Value)
	}
	format := cloudEvents(f)
	f.Fuzz(func(t *testing.T, contentType, id, subject, kind, sequence, at, value []byte) {
		m := event.Message{Value: value, Headers: []event.Header{
			{Key: "content-type", Value: contentType},
			{Key: "ce_specversion", Value: []byte("1.0")},
			{Key: "ce_id", Value: id},
			{Key: "ce_subject", Value: subject},
			{Key: "ce_type", Value: kind},
			{Key: "ce_sequence", Value: sequence},
			{Key: "ce_time", Value: at},
		}}
		if m.Value == nil {
			m.Value = []byte{} // tombstones have their own test
		}
		before := string(value)
		d := decodeMessage(format, m)
		if string(value) != before {
			t.Fatal("the message was changed")
		}
		value = unframed(value)
		whole := checkOutcome(t, &d)
		if d.Identity == event.Unidentified {
			return
		}
		attributes, data := headerMap(m), json.RawMessage(value)
		if strings.HasPrefix(strings.ToLower(string(contentType)), "application/cloudevents") {
			checkDocument(t, value)
			attributes, data = structuredParts(t, value)
		}
		checkAttributes(t, attributes, d.Event)
		if !whole {
			return
		}
		if attributes["ce_type"] != d.Event.TypeName || attributes["ce_specversion"] != "1.0" {
			t.Fatalf("type %q of %v", d.Event.TypeName, attributes)
		}
		if d.Event.Type != event.Ignorable && len(data) > 0 {
			checkMoney(t, data, d.Event)
		}
	})
}

func headerMap(m event.Message) map[string]string {
	headers := map[string]string{}
	for _, h := range m.Headers {
		headers[h.Key] = string(h.Value)
	}
	return headers
}

func structuredParts(t *testing.T, value []byte) (attributes map[string]string, data json.RawMessage) {
	t.Helper()
	members := object(t, value)
	attributes = map[string]string{}
	for name, raw := range members {
		attributes["ce_"+name] = unquoted(string(raw))
	}
	data = members["data"]
	if text, ok := attributes["ce_data_base64"]; ok && data == nil {
		data, _ = base64.StdEncoding.DecodeString(text) // the event was accepted or has another fault
	}
	return attributes, data
}

func checkAttributes(t *testing.T, attributes map[string]string, e event.Event) {
	t.Helper()
	if e.ID != attributes["ce_id"] || e.AccountID != attributes["ce_subject"] || e.ID == "" || e.AccountID == "" ||
		len(e.ID) > 200 || len(e.AccountID) > 200 {
		t.Fatalf("id %q and account %q of %v", e.ID, e.AccountID, attributes)
	}
	digits := strings.TrimLeft(attributes["ce_sequence"], "0")
	var n int64
	if err := json.Unmarshal([]byte(digits), &n); err != nil || n != e.Version {
		t.Fatalf("version %d of %q: %v", e.Version, attributes["ce_sequence"], err)
	}
}
