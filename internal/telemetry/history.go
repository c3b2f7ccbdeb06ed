package telemetry

import (
	"context"
	"sync"
	"time"

	"projector/internal/pace"
	"projector/projection"
)

const (
	// historyEvery is the interval of the samples, and historyKept is how many samples are stored.
	// These samples cover 15 minutes and need about 100 KB.
	historyEvery = time.Second
	historyKept  = 900
	// rateSamples is the number of samples over which a rate is averaged. With fewer samples the
	// rate would jump, because a flush may take some seconds.
	rateSamples = 5
)

// Sample has the values of the charts at one time. Unknown values are nil.
type Sample struct {
	At         time.Time
	Records    projection.OutcomeCounts // counted over all partitions since the start
	LagRecords *int64
	LagSeconds *float64
}

// Rates are numbers of records per second, by outcome.
type Rates struct {
	Applied      float64 `json:"applied"`
	Duplicate    float64 `json:"duplicate"`
	Ignored      float64 `json:"ignored"`
	DeadLettered float64 `json:"dead_lettered"`
}

// History stores the last minutes for the charts, so that the status page shows them as soon as it
// is opened. A History needs a fixed amount of memory and is safe for concurrent use.
type History struct {
	take func() Sample

	mu    sync.Mutex
	next  int // number of samples so far; the newest is at index (next-1) % historyKept
	ring  [historyKept]Sample
	rates [historyKept]Rates
}

// NewHistory returns an empty history. The function take returns the current values. It must not do
// I/O.
func NewHistory(take func() Sample) *History { return &History{take: take} }

// Run takes a sample each second until ctx ends.
func (h *History) Run(ctx context.Context) {
	pace.Every(ctx, historyEvery, historyEvery, func(context.Context) { h.sample() })
}

func (h *History) sample() {
	s := h.take() // before the lock, because a page must not wait for take
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next > 0 && s.At.UnixMilli() <= h.newest() { // the clock was set back
		h.next = 0
	}
	var rates Rates
	if base := min(rateSamples, h.next); base > 0 {
		rates = ratesBetween(&h.ring[(h.next-base)%historyKept], &s)
	}
	h.ring[h.next%historyKept], h.rates[h.next%historyKept] = s, rates
	h.next++
}

// newest returns the time of the newest sample as Unix time in ms. The caller holds mu.
func (h *History) newest() int64 { return h.ring[(h.next-1)%historyKept].At.UnixMilli() }

func ratesBetween(before, now *Sample) Rates {
	seconds := now.At.Sub(before.At).Seconds()
	if seconds <= 0 { // no time has passed
		return Rates{}
	}
	rate := func(o projection.Outcome) float64 {
		return max(0, float64(now.Records[o]-before.Records[o])/seconds)
	}
	return Rates{
		Applied:      rate(projection.Applied),
		Duplicate:    rate(projection.Duplicate),
		Ignored:      rate(projection.Ignored),
		DeadLettered: rate(projection.DeadLettered),
	}
}

// latest returns the newest rates. It returns nil before there are two samples.
func (h *History) latest() *Rates {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next < 2 {
		return nil
	}
	rates := h.rates[(h.next-1)%historyKept]
	return &rates
}

// series is the document /history.json. It has columns of equal length, with the oldest sample
// first. The rates are averages over the last 5 s.
type series struct {
	At           []int64  `json:"at"` // Unix time in ms
	Applied      []number `json:"applied_per_second"`
	Duplicate    []number `json:"duplicate_per_second"`
	Ignored      []number `json:"ignored_per_second"`
	DeadLettered []number `json:"dead_lettered_per_second"`
	LagRecords   []number `json:"lag_records"`
	LagSeconds   []number `json:"lag_seconds"`
}

// since returns the samples that are newer than the given Unix time in ms. If there are none because
// the clock was set back, it returns all samples.
func (h *History) since(after int64) series {
	s := series{
		At: []int64{}, Applied: []number{}, Duplicate: []number{}, Ignored: []number{},
		DeadLettered: []number{}, LagRecords: []number{}, LagSeconds: []number{},
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next > 0 && after > h.newest() {
		after = 0
	}
	for i := max(0, h.next-historyKept); i < h.next; i++ {
		one, r := &h.ring[i%historyKept], &h.rates[i%historyKept]
		at := one.At.UnixMilli()
		if at <= after {
			continue
		}
		s.At = append(s.At, at)
		s.Applied = append(s.Applied, number(r.Applied))
		s.Duplicate = append(s.Duplicate, number(r.Duplicate))
		s.Ignored = append(s.Ignored, number(r.Ignored))
		s.DeadLettered = append(s.DeadLettered, number(r.DeadLettered))
		s.LagRecords = append(s.LagRecords, numberOf(one.LagRecords))
		s.LagSeconds = append(s.LagSeconds, numberOf(one.LagSeconds))
	}
	return s
}
