package dlq

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"projector/projection/event"
)

// readBack reads all entries of an export.
func readBack(file string) (all []Exported, err error) {
	for e, err := range ReadExport(strings.NewReader(file)) {
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	return all, nil
}

func TestExportIsReadBackAsItWas(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		letters := rapid.SliceOfN(genLetter, 1, 4).Draw(rt, "letters")
		var (
			file    bytes.Buffer
			entries []Entry
		)
		for i, letter := range letters {
			record := Record(letter, testStamp, deadTopic, genTime.Draw(rt, "at"))
			if rapid.Bool().Draw(rt, "cut") {
				record = Truncated(letter, testStamp, deadTopic, genTime.Draw(rt, "at"), WithoutValue)
			}
			record.Partition, record.Offset = int32(i), int64(i*7)
			entry, err := Parse(record)
			if err != nil {
				rt.Fatal(err)
			}
			entries = append(entries, entry)
			if err := Export(&file, deadTopic, &entry); err != nil {
				rt.Fatal(err)
			}
		}
		back, err := readBack(file.String())
		if err != nil {
			rt.Fatal(err)
		}
		for i, want := range entries {
			got := back[i]
			if got.Corrected || got.DLQTopic != deadTopic {
				rt.Fatalf("corrected %t, topic %s", got.Corrected, got.DLQTopic)
			}
			// These fields are not part of an export.
			want.CorrelationID = ""
			want.ValueSHA256, want.ValueBytes, want.HeadersDropped, want.KeySHA256, want.KeyBytes = "", 0, 0, "", 0
			for j := range want.Headers {
				want.Headers[j].Key = validKey(want.Headers[j].Key)
			}
			if !reflect.DeepEqual(got.Entry, want) {
				rt.Fatalf("got  %+v\nwant %+v", got.Entry, want)
			}
		}
	})
}

func TestCorrectionsAreNoticed(t *testing.T) {
	entry := Entry{
		Class: event.InvalidAmount, Message: "m", Topic: "t", AccountID: "acc", Expected: new(int64(2)), Received: new(int64(3)), Truncated: true,
		Key: []byte("acc"), Value: []byte(`{"a":1}`), Headers: []event.Header{{Key: "version", Value: []byte("3")}},
	}
	var file bytes.Buffer
	if err := Export(&file, "d", &entry); err != nil {
		t.Fatal(err)
	}
	line := func(edit func(map[string]any)) string {
		var m map[string]any
		if err := json.Unmarshal(file.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		edit(m)
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const corrected = "eyJhIjoyfQ==" // {"a":2}
	cases := map[string]struct {
		edit      func(map[string]any)
		value     string
		corrected bool
	}{
		"nothing":          {func(map[string]any) {}, `{"a":1}`, false},
		"text":             {func(m map[string]any) { m["value"] = `{"a":2}` }, `{"a":2}`, true},
		"base64 only":      {func(m map[string]any) { m["value_base64"] = corrected; delete(m, "value") }, `{"a":2}`, true},
		"text only":        {func(m map[string]any) { m["value"] = `{"a":2}`; delete(m, "value_base64") }, `{"a":2}`, true},
		"both alike":       {func(m map[string]any) { m["value"] = `{"a":2}`; m["value_base64"] = corrected }, `{"a":2}`, true},
		"key":              {func(m map[string]any) { m["key"] = "other" }, `{"a":1}`, true},
		"header":           {func(m map[string]any) { m["headers"].([]any)[0].(map[string]any)["value"] = "4" }, `{"a":1}`, true},
		"message, no part": {func(m map[string]any) { m["message"] = "seen" }, `{"a":1}`, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			back, err := readBack("\n" + line(c.edit) + "\n\n")
			if err != nil || len(back) != 1 {
				t.Fatalf("%d entries, error %v", len(back), err)
			}
			e := back[0]
			if string(e.Value) != c.value || e.Corrected != c.corrected {
				t.Errorf("value %s, corrected %t", e.Value, e.Corrected)
			}
			if e.Truncated == c.corrected || (e.AccountID == "") != c.corrected {
				t.Errorf("truncated %t, account %q: a corrected record is whole and speaks for itself", e.Truncated, e.AccountID)
			}
			if expected := e.ExpectedOf("acc"); expected == nil || *expected != 2 || e.ExpectedOf("other") != nil {
				t.Errorf("expected of its account %v, of another %v", expected, e.ExpectedOf("other"))
			}
		})
	}
}

// Some editors write a byte order mark at the start and CRLF at the ends of lines.
func TestAFileOfAnEditorIsRead(t *testing.T) {
	var file bytes.Buffer
	if err := Export(&file, "d", &Entry{Topic: "t", Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	back, err := readBack("\ufeff\r\n" + strings.TrimSpace(file.String()) + "\r\n\r\n")
	if err != nil || len(back) != 1 || back[0].Corrected || string(back[0].Value) != "v" {
		t.Errorf("%+v, error %v", back, err)
	}
	if _, err := readBack(file.String() + "\ufeff" + file.String()); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a byte order mark in line 2: error %v", err)
	}
}

func TestWhatIsWrongInAFileIsNamedAndNotRepeated(t *testing.T) {
	var file bytes.Buffer
	if err := Export(&file, "d", &Entry{Topic: "t", Value: []byte("secret")}); err != nil {
		t.Fatal(err)
	}
	good := file.String()
	cases := map[string]struct{ line, want string }{
		"no JSON":       {`secret`, "not JSON"},
		"cut off":       {good[:40], "line 2"},
		"another field": {strings.Replace(good, `"value"`, `"secret"`, 1), "another name"},
		"kind":          {strings.Replace(good, `"offset":0`, `"offset":"secret"`, 1), "offset"},
		"number":        {strings.Replace(good, `"offset":0`, `"offset":4711.5`, 1), "offset"},
		"base64":        {strings.Replace(good, `"value":"secret"`, `"value":null,"value_base64":"?secret?"`, 1), "value_base64"},
		"two values":    {strings.Replace(good, `"value":"secret"`, `"value":"secret","value_base64":"YQ=="`, 1), "value and value_base64"},
		"two keys":      {strings.Replace(good, `"key":null`, `"key":"secret","key_base64":"YQ=="`, 1), "key and key_base64"},
		"two headers":   {strings.Replace(good, `"headers":[]`, `"headers":[{"key":"k","value":"secret","value_base64":"YQ=="}]`, 1), "of a header"},
		"another case":  {strings.Replace(good, `"value":"secret"`, `"value":"other","Value":"secret"`, 1), "upper and lower case"},
		"in a header":   {strings.Replace(good, `"headers":[]`, `"headers":[{"key":"k","value":"other","VALUE":"secret"}]`, 1), "upper and lower case"},
		"no export":     {`{"topic":"secret"}`, "sha256"},
		"field twice":   {strings.Replace(good, `"value":"secret"`, `"value":"other","value":"secret"`, 1), "field twice"},
		"surrogate":     {strings.Replace(good, `"value":"secret"`, `"value":"secret\ud800"`, 1), "not UTF-8"},
		"two objects":   {strings.TrimSpace(good) + good, "after its object"},
		"time":          {strings.Replace(good, `"0001-01-01T00:00:00Z"`, `"secret"`, 1), "failed_at"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := readBack(good + c.line)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "line 2") {
				t.Fatalf("error %v, want line 2 and %s", err, c.want)
			}
			if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "4711") {
				t.Errorf("error %v repeats the text", err)
			}
		})
	}
}
