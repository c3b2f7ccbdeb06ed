package accounts

import (
	"hash/maphash"
	"math/bits"
	"unsafe"

	"projector/projection/event"
)

// VersionIndex has the version of every account as of some moment. Versions never go
// down, so what is at or below the version there is a duplicate however old the index has
// become, and nothing else has to be known of the account to say so.
//
// An account is known by 128 bits of a keyed hash of its id, and its last event by 64
// bits: 32 bytes, where an Account with its texts takes four times as much. Once filled,
// a VersionIndex is safe for concurrent use.
type VersionIndex struct {
	limit  int
	id     [2]maphash.Seed
	event  maphash.Seed
	shards [1 << shardBits]indexShard
	slots  int
}

// indexShard is a part of the index, so that growing copies little at a time. Its
// length is no power of two: it is filled to between 0.57 and 0.85.
type indexShard struct {
	slots []indexEntry
	taken int
}

// indexEntry is what is known of one account.
type indexEntry struct {
	id      idHash
	version int64
	event   uint64 // of the event applied at version; 0: not known
}

// idHash is an account's id, hashed. The first half is never 0.
type idHash [2]uint64

const (
	shardBits    = 8
	entryBytes   = int(unsafe.Sizeof(indexEntry{}))
	leastEntries = 16 // slots of a shard
)

// NewVersionIndex returns an index that takes at most limit bytes.
func NewVersionIndex(limit int) *VersionIndex {
	return &VersionIndex{limit: limit, id: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, event: maphash.MakeSeed()}
}

// Room is how many accounts there is memory for, at most.
func (f *VersionIndex) Room() int { return f.limit / entryBytes }

// Add adds an account at the version it has in the database; once each. It returns
// false when there is no room for it.
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

// eventOf is an event's id, hashed; 0 for none.
func (f *VersionIndex) eventOf(id string) uint64 {
	if id == "" {
		return 0
	}
	return max(1, maphash.String(f.event, id))
}

func (f *VersionIndex) shard(id idHash) *indexShard { return &f.shards[id[0]>>(64-shardBits)] }

// home is where the search for an id begins.
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

// get returns what is known of the account, nil when nothing is.
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

// applied reports that the event has been applied for certain. Another event at the
// indexed version itself may be a conflict, which only the account shows.
func (f *VersionIndex) applied(id idHash, ev *event.Event) bool {
	slot := f.shard(id).get(id)
	if slot == nil || ev.Version > slot.version {
		return false
	}
	return ev.Version < slot.version || slot.event == 0 || slot.event == f.eventOf(ev.ID)
}

// warm has the processor load what applied will read; see table.warm.
func (f *VersionIndex) warm(ids []idHash) (sum int64) {
	for _, id := range ids {
		if s := f.shard(id); id[0] != 0 && s.taken > 0 {
			sum += s.slots[s.home(id)].version
		}
	}
	return sum
}

// redelivery notices that a partition is delivered what it has had before, and that
// this is over.
type redelivery struct {
	in      bool
	against int // what speaks against in, without anything for it in between
}

const (
	// redeliveredAfter is how many accounts are read for duplicates alone before the
	// versions of all are read at once: eight partitions have spent an eighth by then of
	// what it costs to read a million.
	redeliveredAfter = 512
	// freshAfter is how many records that are mostly no duplicates end it.
	freshAfter = 8192
)

// applied notes records and the accounts that were read for them.
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
