package accounts

import (
	"hash/maphash"
	"math/bits"
	"unsafe"

	"projector/projection/event"
)

// VersionIndex holds the version of every account at some moment. Only an unskip and a rebuild
// decrease a version, and both fence the consumers. A consumer then uses only an index that was
// read after its new claim. So an event below the indexed version is a duplicate, even if the index
// is old.
//
// It stores a 128-bit keyed hash of the account id and a 64-bit hash of the last event id. An entry
// takes 32 bytes, a quarter of the memory for an account with its strings. A VersionIndex is safe
// for concurrent use when no more accounts are added.
type VersionIndex struct {
	limit  int
	id     [2]maphash.Seed
	event  maphash.Seed
	shards [1 << shardBits]indexShard
	slots  int
}

// indexShard is a part of the index. The index has many shards, so that only a small part is copied
// when a shard grows. A shard grows by half of its length. Therefore, between 57 % and 85 % of the
// slots are used, except in a shard with few accounts.
type indexShard struct {
	slots []indexEntry
	taken int
}

// indexEntry is the entry of one account.
type indexEntry struct {
	id      idHash
	version int64
	event   uint64 // hash of the event applied at version; 0 if unknown
}

// idHash is the hash of an account id. The first half is never 0, because 0 marks an empty slot.
type idHash [2]uint64

const (
	shardBits    = 8
	entryBytes   = int(unsafe.Sizeof(indexEntry{}))
	leastEntries = 16 // slots of a shard
)

// NewVersionIndex returns an index whose entries take at most limit bytes.
func NewVersionIndex(limit int) *VersionIndex {
	return &VersionIndex{limit: limit, id: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, event: maphash.MakeSeed()}
}

// Room returns the number of entries that fit into the limit. The index holds fewer accounts than
// that, because some slots stay empty.
func (f *VersionIndex) Room() int { return f.limit / entryBytes }

// Add adds an account with its stored version. The caller adds each account only once. Add returns
// false if the limit is reached.
func (f *VersionIndex) Add(id string, version int64, lastEventID string) bool {
	key := f.idOf(id)
	s := f.shard(key)
	if 20*(s.taken+1) > 17*len(s.slots) {
		more := max(leastEntries, len(s.slots)/2)
		if (f.slots+more)*entryBytes > f.limit {
			return false
		}
		f.slots += more
		s.grow(len(s.slots) + more)
	}
	s.put(indexEntry{id: key, version: version, event: f.eventOf(lastEventID)})
	s.taken++
	return true
}

func (f *VersionIndex) idOf(id string) idHash {
	return idHash{max(1, maphash.String(f.id[0], id)), maphash.String(f.id[1], id)}
}

// eventOf returns the hash of an event id, or 0 for an empty one.
func (f *VersionIndex) eventOf(id string) uint64 {
	if id == "" {
		return 0
	}
	return max(1, maphash.String(f.event, id))
}

func (f *VersionIndex) shard(id idHash) *indexShard { return &f.shards[id[0]>>(64-shardBits)] }

// home returns the slot where the search for an id starts.
func (s *indexShard) home(id idHash) int {
	i, _ := bits.Mul64(id[0]<<shardBits, uint64(len(s.slots)))
	return int(i) //nolint:gosec // G115: less than the length
}

func (s *indexShard) put(slot indexEntry) {
	i := s.home(slot.id)
	for s.slots[i].id[0] != 0 {
		if i++; i == len(s.slots) {
			i = 0
		}
	}
	s.slots[i] = slot
}

func (s *indexShard) grow(size int) {
	before := s.slots
	s.slots = make([]indexEntry, size)
	for _, slot := range before {
		if slot.id[0] != 0 {
			s.put(slot)
		}
	}
}

func (s *indexShard) get(id idHash) *indexEntry {
	if s.taken == 0 {
		return nil
	}
	for i := s.home(id); ; {
		slot := &s.slots[i]
		if slot.id == id {
			return slot
		}
		if slot.id[0] == 0 {
			return nil
		}
		if i++; i == len(s.slots) {
			i = 0
		}
	}
}

// applied reports whether the event has certainly been applied. The result is false for another
// event at exactly the indexed version, because such an event may be a conflict, which only the
// account itself shows.
func (f *VersionIndex) applied(id idHash, ev *event.Event) bool {
	slot := f.shard(id).get(id)
	if slot == nil || ev.Version > slot.version {
		return false
	}
	return ev.Version < slot.version || slot.event == 0 || slot.event == f.eventOf(ev.ID)
}

// warm reads most of the memory that the method applied will read, so that it is in the processor's
// cache; see table.warm.
func (f *VersionIndex) warm(ids []idHash) (sum int64) {
	for _, id := range ids {
		if s := f.shard(id); id[0] != 0 && s.taken > 0 {
			sum += s.slots[s.home(id)].version
		}
	}
	return sum
}

// redelivery detects when a redelivery of events in a partition begins and when it ends.
type redelivery struct {
	in      bool
	against int // counts records or accounts that contradict the value of in; see applied
}

const (
	// redeliveredAfter is the number of accounts that are read only to find duplicates before the
	// index is used. If each of eight partitions reads this many accounts, this costs an eighth of
	// reading a million accounts for the index.
	redeliveredAfter = 512
	// freshAfter is the number of mostly new records after which a redelivery has ended.
	freshAfter = 8192
)

// applied is called after records were applied. The parameter duplicates is the number of
// duplicates among them, and accountsRead is the number of accounts that were read for them.
func (r *redelivery) applied(records, duplicates, accountsRead int) {
	if records == 0 {
		return
	}
	over := freshAfter
	switch mostly := 10*duplicates >= 9*records; {
	case mostly == r.in:
		r.against = 0
		return
	case r.in:
		r.against += records
	default:
		r.against += accountsRead
		over = redeliveredAfter
	}
	if r.against >= over {
		*r = redelivery{in: !r.in}
	}
}
