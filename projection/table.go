package projection

import (
	"hash/maphash"
	"strings"
	"unsafe"

	"projector/projection/event"
)

// account is an account in memory: the database's row and what is pending on it.
// It holds no pointer, and neither does the table, so that the garbage collector
// does not walk through hundreds of thousands of accounts again and again. What
// few accounts have stands in a hold beside them.
type account struct {
	version, balance, eventAt int64
	base                      int64 // version in the database
	id                        span
	chain                     int32 // next account with the same hash, or none
	currency                  event.Currency
	exists                    bool // it has a balance row
	closed                    bool
	held                      bool // the database may hold parked events of it
	dirty                     bool
	healing                   bool
	lettered                  bool // its base is among changes.Bases
	dropped                   bool // no longer to be found
	eventLen                  uint8
	event                     [eventInline]byte // last event id, when it is no longer than this
}

const (
	eventInline = 40 // a UUID, with a little room
	slabSize    = 512
	arenaChunk  = 64 << 10
	none        = -1

	// accountBytes is what an account costs, with its share of the map, without its id.
	accountBytes = int(unsafe.Sizeof(account{})) + 24
)

// span is a string in an arena.
type span struct {
	chunk  uint32
	offset uint16
	length uint8
}

// table finds accounts by id.
type table struct {
	seed   maphash.Seed
	first  map[uint64]int32 // by hash: the newest account with it
	slabs  []*[slabSize]account
	used   int32
	arena  [][]byte
	longer map[*account]string // last event ids that do not fit inline
	bytes  int
}

func newTable(seed maphash.Seed) *table {
	return &table{seed: seed, first: map[uint64]int32{}, longer: map[*account]string{}}
}

func (t *table) at(i int32) *account { return &t.slabs[i/slabSize][i%slabSize] }

// get finds the account, or answers nil.
func (t *table) get(id string) *account {
	i, found := t.first[maphash.String(t.seed, id)]
	for found && i != none {
		a := t.at(i)
		if !a.dropped && t.idOf(a) == id {
			return a
		}
		i = a.chain
	}
	return nil
}

// add makes an empty account. The id must not be in the table.
func (t *table) add(id string) *account {
	if int(t.used) == len(t.slabs)*slabSize {
		t.slabs = append(t.slabs, new([slabSize]account))
	}
	i := t.used
	t.used++
	a := t.at(i)
	*a = account{id: t.store(id), chain: none}
	hash := maphash.String(t.seed, id)
	if before, taken := t.first[hash]; taken {
		a.chain = before
	}
	t.first[hash] = i
	t.bytes += accountBytes + len(id)
	return a
}

// store copies an id of at most 255 bytes into the arena.
func (t *table) store(id string) span {
	last := len(t.arena) - 1
	if last < 0 || len(t.arena[last])+len(id) > arenaChunk-1 {
		t.arena = append(t.arena, make([]byte, 0, arenaChunk))
		last++
	}
	s := span{chunk: uint32(last), offset: uint16(len(t.arena[last])), length: uint8(len(id))} //nolint:gosec // bounded above
	t.arena[last] = append(t.arena[last], id...)
	return s
}

// idOf is the account's id. The bytes of an arena never change, so the string may
// be kept.
func (t *table) idOf(a *account) string {
	if a.id.length == 0 {
		return ""
	}
	return unsafe.String(&t.arena[a.id.chunk][a.id.offset], int(a.id.length)) //nolint:gosec // see above
}

// state is the account's state. Its LastEventID is a view that is valid until the
// account is set again.
func (t *table) state(a *account) State {
	s := State{
		Version: a.version, Balance: a.balance, Currency: a.currency, Closed: a.closed, LastEventAt: a.eventAt,
	}
	switch {
	case a.eventLen == 0:
	case a.eventLen <= eventInline:
		s.LastEventID = unsafe.String(&a.event[0], int(a.eventLen)) //nolint:gosec // see above
	default:
		s.LastEventID = t.longer[a]
	}
	return s
}

// set copies a state into the account.
func (t *table) set(a *account, s State) {
	a.version, a.balance, a.currency, a.closed, a.eventAt = s.Version, s.Balance, s.Currency, s.Closed, s.LastEventAt
	if a.eventLen > eventInline {
		delete(t.longer, a)
	}
	a.eventLen = uint8(min(len(s.LastEventID), 255))
	if a.eventLen > eventInline {
		t.longer[a] = strings.Clone(s.LastEventID) // it may be a view of a whole fetch
		t.bytes += len(s.LastEventID)
		return
	}
	copy(a.event[:], s.LastEventID)
}

// drop makes the account no longer to be found. Its memory is freed with the table.
func (t *table) drop(a *account) { a.dropped = true }
