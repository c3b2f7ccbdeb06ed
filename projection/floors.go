package projection

import (
	"hash/maphash"
	"math/bits"
	"unsafe"

	"projector/projection/event"
)

// Floors know of many accounts a version that is applied for good. Versions never go
// down, so what is at or below the floor is a duplicate however old the floor has
// become, and nothing else has to be known of the account to say so.
//
// An account is known by 128 bits of a keyed hash of its id, and its last event by 64
// bits: 32 bytes, where a State with its texts takes four times as much. Once filled,
// Floors are safe for concurrent use.
type Floors struct {
	limit  int
	id     [2]maphash.Seed
	event  maphash.Seed
	shards [1 << shardBits]floorShard
	slots  int
}

// floorShard is a part of the index, so that growing copies little at a time. Its
// length is no power of two: it is filled to between 0.57 and 0.85.
type floorShard struct {
	slots []floorSlot
	taken int
}

// floorSlot is what is known of one account.
type floorSlot struct {
	id      floorID
	version int64
	event   uint64 // of the event applied at version; 0: not known
}

// floorID is an account's id, hashed. The first half is never 0.
type floorID [2]uint64

const (
	shardBits      = 8
	floorSlotBytes = int(unsafe.Sizeof(floorSlot{}))
	leastFloors    = 16 // slots of a shard
)

// NewFloors returns floors that take at most limit bytes.
func NewFloors(limit int) *Floors {
	return &Floors{limit: limit, id: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, event: maphash.MakeSeed()}
}

// Room is how many accounts there is memory for, at most.
func (f *Floors) Room() int { return f.limit / floorSlotBytes }

// Add takes in an account at the version it has in the database; once each. It answers
// false when there is no room for it.
func (f *Floors) Add(id string, version int64, lastEventID string) bool {
	key := f.idOf(id)
	s := f.shard(key)
	if 20*(s.taken+1) > 17*len(s.slots) {
		more := max(leastFloors, len(s.slots)/2)
		if (f.slots+more)*floorSlotBytes > f.limit {
			return false
		}
		f.slots += more
		s.grow(len(s.slots) + more)
	}
	s.put(floorSlot{id: key, version: version, event: f.eventOf(lastEventID)})
	s.taken++
	return true
}

func (f *Floors) idOf(id string) floorID {
	return floorID{max(1, maphash.String(f.id[0], id)), maphash.String(f.id[1], id)}
}

// eventOf is an event's id, hashed; 0 for none.
func (f *Floors) eventOf(id string) uint64 {
	if id == "" {
		return 0
	}
	return max(1, maphash.String(f.event, id))
}

func (f *Floors) shard(id floorID) *floorShard { return &f.shards[id[0]>>(64-shardBits)] }

// home is where the search for an id begins.
func (s *floorShard) home(id floorID) int {
	i, _ := bits.Mul64(id[0]<<shardBits, uint64(len(s.slots)))
	return int(i) //nolint:gosec // G115: less than the length
}

func (s *floorShard) put(slot floorSlot) {
	i := s.home(slot.id)
	for s.slots[i].id[0] != 0 {
		if i++; i == len(s.slots) {
			i = 0
		}
	}
	s.slots[i] = slot
}

func (s *floorShard) grow(size int) {
	before := s.slots
	s.slots = make([]floorSlot, size)
	for _, slot := range before {
		if slot.id[0] != 0 {
			s.put(slot)
		}
	}
}

// get answers what is known of the account, nil when nothing is.
func (s *floorShard) get(id floorID) *floorSlot {
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
// floor itself may be a conflict, which only the account's state can tell.
func (f *Floors) applied(id floorID, ev *event.Event) bool {
	slot := f.shard(id).get(id)
	if slot == nil || ev.Version > slot.version {
		return false
	}
	return ev.Version < slot.version || slot.event == 0 || slot.event == f.eventOf(ev.ID)
}

// warm has the processor load what applied will read; see table.warm.
func (f *Floors) warm(ids []floorID) (sum int64) {
	for _, id := range ids {
		if s := f.shard(id); id[0] != 0 && s.taken > 0 {
			sum += s.slots[s.home(id)].version
		}
	}
	return sum
}
