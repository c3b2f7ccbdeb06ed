package dlq

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// Dead letters may stay in a topic for months, so those of earlier releases must be readable.
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
		})
	}
}

// A header that was added later must be optional for every reader. Required headers are those of
// the first release.
func TestALaterHeaderIsOptional(t *testing.T) {
	const later = OwnPrefix + "errors.later"
	own := fields{}
	if text, name, number, moment, sum := own.text(later), own.name(later), own.number(later, 1, 2), own.time(later), own.digest(later); own.err != nil ||
		text != "" || name != "" || number != 0 || !moment.IsZero() || sum != "" {
		t.Errorf("a header that is not there: %v", own.err)
	}
	own.add(kgo.RecordHeader{Key: later, Value: []byte("x")})
	if own.number(later, 1, 2); own.err == nil {
		t.Error("a header that is garbled is accepted")
	}
	there := map[string]bool{}
	eachReleased(t, "testdata/released/first.jsonl", func(r *released) {
		for _, h := range r.Headers {
			if strings.HasPrefix(h[0], OwnPrefix) {
				there[h[0]] = true
			}
		}
	})
	if got, want := slices.Sorted(maps.Keys(firstForm)), slices.Sorted(maps.Keys(there)); !slices.Equal(got, want) {
		t.Errorf("required are\n%v\nthe first release wrote\n%v", got, want)
	}
}
