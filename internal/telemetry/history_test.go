package telemetry

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"projector/projection"
)

// steady returns a history of n samples, with one sample per second. In each second, 10 records are
// applied. The lag is always 7 records.
func steady(n int) *History {
	at, applied, lag, seconds := time.Unix(1_000, 0), 0, int64(7), 0.5
	h := NewHistory(func() Sample {
		at, applied = at.Add(time.Second), applied+10
		return Sample{At: at, Records: projection.OutcomeCounts{projection.Applied: applied}, LagRecords: &lag, LagSeconds: &seconds}
	})
	for range n {
		h.sample()
	}
	return h
}

func TestHistoryKeepsTheLastSamples(t *testing.T) {
	if s := NewHistory(nil).since(0); len(s.At) != 0 || s.At == nil {
		t.Errorf("an empty history: %+v", s)
	}
	for _, n := range []int{1, 2, historyKept - 1, historyKept, historyKept + 1, 3*historyKept + 17} {
		s := steady(n).since(0)
		if len(s.At) != min(n, historyKept) || s.At[len(s.At)-1] != int64(1_000+n)*1000 || !slices.IsSorted(s.At) {
			t.Errorf("%d: %d samples up to %d", n, len(s.At), s.At[len(s.At)-1])
		}
		if last := s.Applied[len(s.Applied)-1]; n > 1 && last != 10 {
			t.Errorf("%d: rate %v", n, last)
		}
		if s.LagRecords[0] != 7 || s.LagSeconds[0] != 0.5 {
			t.Errorf("%d: lag %v, %v", n, s.LagRecords[0], s.LagSeconds[0])
		}
	}
}

func TestHistoryAnswersOnlyWhatIsNew(t *testing.T) {
	h := steady(100)
	all := h.since(0)
	if rest := h.since(all.At[89]); !slices.Equal(rest.At, all.At[90:]) || len(rest.LagSeconds) != 10 {
		t.Errorf("got %v", rest.At)
	}
	if rest := h.since(all.At[99]); len(rest.At) != 0 {
		t.Errorf("got %v", rest.At)
	}
}

func TestRatesAreMeansOfFiveSeconds(t *testing.T) {
	at, counts, flushed := time.Unix(1_000, 0), projection.OutcomeCounts{}, []int{0, 0, 50, 0, 0, 0, 0, 0, 0}
	next := 0
	h := NewHistory(func() Sample {
		counts[projection.Duplicate] += flushed[next]
		next++
		at = at.Add(time.Second)
		return Sample{At: at, Records: counts}
	})
	for range flushed {
		h.sample()
	}
	want := []number{0, 0, 25, 50.0 / 3, 12.5, 10, 10, 0, 0}
	if got := h.since(0).Duplicate; !slices.Equal(got, want) {
		t.Errorf("rates %v, want %v", got, want)
	}
	if r := h.latest(); r == nil || r.Duplicate != 0 {
		t.Errorf("the newest: %v", r)
	}
}

// TestRatesWhenTheClockJumps shows that a clock that was set back, or a process that was stopped
// for some time, does not cause a false rate.
func TestRatesWhenTheClockJumps(t *testing.T) {
	at, counts := time.Unix(1_000, 0), projection.OutcomeCounts{}
	steps := []time.Duration{time.Second, -time.Hour, 0, 2 * time.Hour, time.Second}
	h := NewHistory(func() Sample {
		at = at.Add(steps[0])
		steps = steps[1:]
		counts[projection.Applied] += 100
		return Sample{At: at, Records: counts}
	})
	for range 5 {
		h.sample()
	}
	for _, rate := range h.since(-1 << 62).Applied {
		if rate < 0 || rate > 100 {
			t.Errorf("rate %v", rate)
		}
	}
}

// TestHistoryWhenTheClockIsSetBack shows that a page that is open still gets samples, in the order of
// their times.
func TestHistoryWhenTheClockIsSetBack(t *testing.T) {
	at := time.Unix(10_000, 0)
	h := NewHistory(func() Sample {
		at = at.Add(time.Second)
		return Sample{At: at}
	})
	for range 3 {
		h.sample()
	}
	last := at.UnixMilli() // what the page has
	at = at.Add(-time.Hour)
	h.sample()
	h.sample()
	if got := h.since(last).At; !slices.Equal(got, []int64{at.UnixMilli() - 1000, at.UnixMilli()}) {
		t.Errorf("the page gets %v", got)
	}
	if got := h.since(0).At; !slices.IsSorted(got) {
		t.Errorf("a new page gets %v", got)
	}
}

func TestHistoryJSON(t *testing.T) {
	h := NewHistory(func() Sample { return Sample{At: time.UnixMilli(1_700_000_000_123)} })
	h.sample()
	s := newServer("", NewRegistry(), NewHealth(), Page{History: h}, quiet())
	var got map[string][]any
	if err := json.Unmarshal([]byte(get(t, s, "/history.json").body), &got); err != nil {
		t.Fatal(err)
	}
	const want = "applied_per_second at dead_lettered_per_second duplicate_per_second ignored_per_second lag_records lag_seconds"
	if names := strings.Join(slices.Sorted(maps.Keys(got)), " "); names != want {
		t.Errorf("names %s", names)
	}
	if got["at"][0] != 1_700_000_000_123.0 || got["lag_records"][0] != nil || got["lag_seconds"][0] != nil {
		t.Errorf("got %v; an unknown lag is null", got)
	}
	if body := get(t, s, "/history.json?after="+strconv.Itoa(1_700_000_000_123)).body; !strings.Contains(body, `"at":[]`) {
		t.Errorf("nothing is new, but %s", body)
	}
	if r := get(t, s, "/history.json?after=now"); r.code != http.StatusBadRequest || !strings.HasPrefix(r.body, "after: ") {
		t.Errorf("%d %s", r.code, r.body)
	}
}

func TestLastDeadLettersKeepsTheLast(t *testing.T) {
	l := NewLastDeadLetters()
	for i := range int64(lettersKept + 5) {
		l.Published(DeadLetter{Class: "version_gap", Offset: i})
	}
	s := l.status()
	if s.Total != lettersKept+5 || s.ByClass["version_gap"] != s.Total || len(s.Recent) != lettersKept ||
		s.Recent[0].Offset != lettersKept+4 || s.Recent[lettersKept-1].Offset != 5 {
		t.Errorf("%+v", s)
	}
}

func TestSnapshotReturnsTheReportedMetrics(t *testing.T) {
	m := NewMetrics(NewRegistry(), "daily_turnover", topic)
	if got := m.Snapshot(); got.ProgressAt != nil || got.InboxRows != nil || got.Records != (projection.OutcomeCounts{}) {
		t.Errorf("before anything: %+v", got)
	}
	for i, outcome := range projection.Outcomes() {
		consume(m, 0, outcome, i+1)
		consume(m, 1, outcome, 10*(i+1))
	}
	consume(m, 1, projection.Applied, -5)
	at := time.UnixMilli(1_700_000_000_123)
	m.progress(at)
	m.InboxRows(0)
	got := m.Snapshot()
	want := projection.OutcomeCounts{projection.Applied: 11, projection.Duplicate: 22, projection.Ignored: 33, projection.DeadLettered: 44}
	if got.Records != want || !got.ProgressAt.Equal(at) || *got.InboxRows != 0 {
		t.Errorf("got %+v", got)
	}
}

// BenchmarkSample measures the cost of one sample, which is taken each second even if nobody opens
// the status page. The consumer's description of its partitions is not included.
func BenchmarkSample(b *testing.B) {
	h := steady(historyKept)
	b.ReportAllocs()
	for b.Loop() {
		h.sample()
	}
}

// BenchmarkPage measures the cost of one status page for very many partitions.
func BenchmarkPage(b *testing.B) {
	s := busy(256)
	p := &pages{Page: s.page(), health: s.health, log: quiet()}
	b.ReportAllocs()
	for b.Loop() {
		if err := page.Execute(discard{}, viewOf(p.document())); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// TestLagIsACopy shows that a sample of the history keeps no partition in memory.
func TestLagIsACopy(t *testing.T) {
	lag, seconds := int64(7), 2.5
	s := Status{Partitions: []PartitionStatus{{LagRecords: &lag, LagSeconds: &seconds}}}
	gotRecords, gotSeconds := s.Lag()
	if *gotRecords != 7 || *gotSeconds != 2.5 {
		t.Errorf("%d records, %g s", *gotRecords, *gotSeconds)
	}
	if gotRecords == &lag || gotSeconds == &seconds {
		t.Error("the lag shares the memory of the partition")
	}
}
