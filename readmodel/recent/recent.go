// Package recent remembers recently processed events, in bounded memory and for a limited time. If
// it knows an event, the event is a duplicate and is not written again, which saves work. For all
// other events, the write shows whether they are duplicates.
//
// It contains only durable events. It is cleared whenever the partition is claimed, because the
// database may have been restored to an older state.
package recent

import (
	"encoding/binary"
	"hash/maphash"
	"time"

	"projector/readmodel"
	"projector/readmodel/appended"
)

// TTL is the default time for which an event is remembered.
const TTL = time.Hour

// Config is the configuration of a Cache.
type Config struct {
	Bytes func() int       // current memory limit, approximate
	TTL   time.Duration    // 0 means the constant TTL
	Now   func() time.Time // nil means time.Now
}

// Of returns the cache of one partition.
func Of(cfg readmodel.RunConfig) appended.Recent { return New(Config{Bytes: cfg.CacheBytes}) }

// Cache remembers events of one partition in two maps. The first map is for the current period, and
// the second one for the period before. The second map is dropped when the next period begins. One
// goroutine at a time uses it.
//
// An event is identified by two independent 64-bit hashes with secret seeds. So two events are
// mixed up only if all 128 bits of their hashes are equal.
type Cache struct {
	cfg       Config
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

var _ appended.Recent = (*Cache)(nil)

// New returns an empty cache.
func New(cfg Config) *Cache {
	if cfg.TTL <= 0 {
		cfg.TTL = TTL
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &Cache{cfg: cfg, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, began: cfg.Now()}
	c.Clear()
	return c
}

func (c *Cache) now() int64 { return int64(c.cfg.Now().Sub(c.began)) }

func (c *Cache) fingerprint(s appended.Seen) (f fingerprint) {
	var number [8]byte
	binary.LittleEndian.PutUint64(number[:], uint64(s.Key.Number)) //nolint:gosec // G115: its bits
	for i, seed := range c.seeds {
		var h maphash.Hash
		h.SetSeed(seed)
		_, _ = h.WriteString(s.EventID)
		_, _ = h.Write(number[:])
		_, _ = h.WriteString(s.Key.Text)
		f[i] = h.Sum64()
	}
	return f
}

// Check reports whether the event was marked within the TTL. Events may be forgotten earlier if
// memory is short or the clock jumps.
func (c *Cache) Check(s appended.Seen) (bool, error) {
	p := c.fingerprint(s)
	at, found := c.hot.marked[p]
	if !found {
		if at, found = c.cold.marked[p]; !found {
			return false, nil
		}
	}
	age := c.now() - at
	return age >= 0 && age < int64(c.cfg.TTL), nil
}

// entryBytes is the memory of an event in a map that has just grown.
const entryBytes = 64

// Mark remembers events that are durable.
func (c *Cache) Mark(events []appended.Seen) error {
	now, most := c.now(), c.cfg.Bytes()/2/entryBytes
	for _, s := range events {
		if len(c.hot.marked) >= most || now-c.hot.since >= int64(c.cfg.TTL) {
			c.hot, c.cold = newPeriod(now), c.hot
		}
		c.hot.marked[c.fingerprint(s)] = now
	}
	return nil
}

// Clear removes all events.
func (c *Cache) Clear() { c.hot, c.cold = newPeriod(c.now()), newPeriod(c.now()) }

func newPeriod(now int64) period { return period{marked: map[fingerprint]int64{}, since: now} }
