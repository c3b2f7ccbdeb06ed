package appended

import (
	"encoding/binary"
	"hash/maphash"
	"time"

	"projector/readmodel"
)

// recentFor is the time for which an event is remembered.
const recentFor = time.Hour

// Recent is the recent-event cache of one partition. It remembers recently processed events, in
// bounded memory and for a limited time. If it knows an event, the event is a duplicate and is not
// written again, which saves work. For all other events, the write shows whether they are
// duplicates.
//
// It contains only durable events. It is cleared whenever the partition is claimed, because the
// database may have been restored to an older state.
//
// The events are in two maps. The first map is for the current period, and the second one for the
// period before. The second map is dropped when the next period begins. One goroutine at a time uses
// the cache.
//
// An event is identified by two independent 64-bit hashes with secret seeds. So two events are
// mixed up only if all 128 bits of their hashes are equal.
type Recent struct {
	bytes     func() int // current memory limit, approximate
	clock     func() time.Time
	seeds     [2]maphash.Seed
	began     time.Time
	hot, cold period
}

type fingerprint [2]uint64

// period holds the events of one period, with the times at which they were marked, in ns since the
// cache was created.
type period struct {
	marked map[fingerprint]int64
	since  int64
}

// RecentOf returns the empty cache of one partition.
func RecentOf(cfg readmodel.RunConfig) *Recent { return NewRecent(cfg.CacheBytes, time.Now) }

// NewRecent returns an empty cache. The function bytes returns the current memory limit, and clock
// the current time.
func NewRecent(bytes func() int, clock func() time.Time) *Recent {
	c := &Recent{bytes: bytes, clock: clock, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, began: clock()}
	c.Clear()
	return c
}

func (c *Recent) now() int64 { return int64(c.clock().Sub(c.began)) }

func (c *Recent) fingerprint(s Seen) (f fingerprint) {
	var number [8]byte
	binary.LittleEndian.PutUint64(number[:], uint64(s.Key.Number)) //nolint:gosec // G115: its bits
	for i, seed := range c.seeds {
		var h maphash.Hash
		h.SetSeed(seed)
		_, _ = h.Write(number[:])
		_, _ = h.WriteString(s.EventID)
		_ = h.WriteByte(0) // no id contains it, so it shows where the first one ends
		_, _ = h.WriteString(s.Key.Text)
		f[i] = h.Sum64()
	}
	return f
}

// Check reports whether the event was marked within the last hour. Events may be forgotten earlier
// if memory is short or the clock jumps.
func (c *Recent) Check(s Seen) bool {
	p := c.fingerprint(s)
	at, found := c.hot.marked[p]
	if !found {
		if at, found = c.cold.marked[p]; !found {
			return false
		}
	}
	age := c.now() - at
	return age >= 0 && age < int64(recentFor)
}

// seenBytes is the memory of an event in a map that has just grown.
const seenBytes = 64

// Mark remembers events that are durable.
func (c *Recent) Mark(events []Seen) {
	now, most := c.now(), c.bytes()/2/seenBytes
	for _, s := range events {
		if len(c.hot.marked) >= most || now-c.hot.since >= int64(recentFor) {
			c.hot, c.cold = newPeriod(now), c.hot
		}
		c.hot.marked[c.fingerprint(s)] = now
	}
}

// Clear removes all events.
func (c *Recent) Clear() { c.hot, c.cold = newPeriod(c.now()), newPeriod(c.now()) }

func newPeriod(now int64) period { return period{marked: map[fingerprint]int64{}, since: now} }
