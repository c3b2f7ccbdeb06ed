package dlq

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The type released is a dead letter as one of the releases wrote it. Each file in
// testdata/released contains dead letters with one set of headers. If you add a header, add a file
// and do not change the others.
type released struct {
	Form       string
	Key, Value *string
	Headers    [][2]string
	Want       string
}

func (r *released) record() *kgo.Record {
	record := &kgo.Record{Partition: 1, Offset: 2}
	if r.Key != nil {
		record.Key = []byte(*r.Key)
	}
	if r.Value != nil {
		record.Value = []byte(*r.Value)
	}
	for _, h := range r.Headers {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: h[0], Value: []byte(h[1])})
	}
	return record
}

func eachReleased(t *testing.T, file string, fn func(*released)) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var r released
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		fn(&r)
	}
}

// Dead letters may stay in a topic for months, so dead letters of earlier releases must be
// readable.
func TestDeadLettersOfEveryReleaseCanBeRead(t *testing.T) {
	files, err := filepath.Glob("testdata/released/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	number := func(n *int64) string {
		if n == nil {
			return "<nil>"
		}
		return fmt.Sprint(*n)
	}
	for _, file := range files {
		eachReleased(t, file, func(r *released) {
			e, err := Parse(r.record())
			if err != nil {
				t.Errorf("%s: %s: %v", file, r.Form, err)
				return
			}
			got := fmt.Sprintf("%s %s %d/%d %s %s %s %s %d %v", e.Class, e.Topic, e.Partition, e.Offset, e.AccountID, e.EventID,
				number(e.Expected), number(e.Received), e.Replays, e.Truncated)
			if got != r.Want {
				t.Errorf("%s: %s:\ngot  %s\nwant %s", file, r.Form, got, r.Want)
			}
			checkHeaders(t, &e, r)
		})
	}
}

// headerOf has a function for each header, which returns the value that Parse has read from the
// header. The value is empty if the dead letter does not have the header.
var headerOf = map[string]func(*Entry) string{
	HeaderClass:           func(e *Entry) string { return string(e.Class) },
	HeaderMessage:         func(e *Entry) string { return e.Message },
	HeaderTopic:           func(e *Entry) string { return e.Topic },
	HeaderPartition:       func(e *Entry) string { return fmt.Sprint(e.Partition) },
	HeaderOffset:          func(e *Entry) string { return fmt.Sprint(e.Offset) },
	HeaderEntry:           func(e *Entry) string { return orEmpty(e.Event > 0, int64(e.Event)-1) },
	HeaderTimestamp:       func(e *Entry) string { return fmt.Sprint(e.Timestamp) },
	HeaderGroup:           func(e *Entry) string { return e.Group },
	HeaderProjection:      func(e *Entry) string { return e.Projection },
	HeaderAccountID:       func(e *Entry) string { return e.AccountID },
	HeaderExpectedVersion: func(e *Entry) string { return pointed(e.Expected) },
	HeaderReceivedVersion: func(e *Entry) string { return pointed(e.Received) },
	HeaderEventID:         func(e *Entry) string { return e.EventID },
	HeaderCorrelationID:   func(e *Entry) string { return e.CorrelationID },
	HeaderFailedAt:        func(e *Entry) string { return e.FailedAt.Format(time.RFC3339Nano) },
	HeaderReplays:         func(e *Entry) string { return fmt.Sprint(e.Replays) },
	HeaderValueSHA256:     func(e *Entry) string { return e.ValueSHA256 },
	HeaderValueBytes:      func(e *Entry) string { return orEmpty(e.ValueBytes > 0, e.ValueBytes) },
	HeaderHeadersDropped:  func(e *Entry) string { return orEmpty(e.HeadersDropped > 0, int64(e.HeadersDropped)) },
	HeaderKeySHA256:       func(e *Entry) string { return e.KeySHA256 },
	HeaderKeyBytes:        func(e *Entry) string { return orEmpty(e.KeyBytes > 0, e.KeyBytes) },
}

func orEmpty(known bool, n int64) string {
	if !known {
		return ""
	}
	return fmt.Sprint(n)
}

func pointed(n *int64) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// checkHeaders compares what Parse has read with the headers of the fixture.
func checkHeaders(t *testing.T, e *Entry, r *released) {
	t.Helper()
	want := map[string]string{}
	for _, h := range r.Headers {
		want[h[0]] = h[1]
	}
	for header, read := range headerOf {
		if got := read(e); got != want[header] {
			t.Errorf("%s: Parse reads %q from %s, want %q", r.Form, got, header, want[header])
		}
	}
}

// TestEveryHeaderIsReadReleasedAndDocumented compares the constants of headers.go with headerOf,
// with the fixtures and with docs/formats.md.
func TestEveryHeaderIsReadReleasedAndDocumented(t *testing.T) {
	headers := headerConstants(t)
	same := func(what string, got []string) {
		t.Helper()
		for _, header := range headers {
			if !slices.Contains(got, header) {
				t.Errorf("%s is missing in %s", header, what)
			}
		}
		for _, header := range got {
			if !slices.Contains(headers, header) {
				t.Errorf("%s is in %s, but it is no constant of headers.go", header, what)
			}
		}
	}
	same("headerOf", slices.Collect(maps.Keys(headerOf)))

	var there []string
	files, _ := filepath.Glob("testdata/released/*.jsonl")
	for _, file := range files {
		eachReleased(t, file, func(r *released) {
			for _, h := range r.Headers {
				if strings.HasPrefix(h[0], OwnPrefix) {
					there = append(there, h[0])
				}
			}
		})
	}
	same("testdata/released", there)

	page, err := os.ReadFile("../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "Their names begin with `"+OwnPrefix+"errors.`:\n\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var documented []string
	for _, name := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(list, -1) {
		documented = append(documented, OwnPrefix+"errors."+name[1])
	}
	same("docs/formats.md", documented)
}

// headerConstants returns the values of the constants in headers.go that name a header, sorted.
func headerConstants(t *testing.T) []string {
	t.Helper()
	code, err := os.ReadFile("headers.go")
	if err != nil {
		t.Fatal(err)
	}
	var headers []string
	for _, constant := range regexp.MustCompile(`(?m)^\tHeader\w+ += OwnPrefix \+ "(.+?)"`).FindAllStringSubmatch(string(code), -1) {
		headers = append(headers, OwnPrefix+constant[1])
	}
	slices.Sort(headers)
	return headers
}
