package accounts

import (
	"hash/maphash"
	"strings"
	"unsafe"

	"projector/projection"
	"projector/projection/event"
)

// account is an account in memory: its stored state and its pending changes. An account and the
// index of its table have no pointers, so the garbage collector does not have to scan hundreds of
// thousands of accounts. Parked events, which few accounts have, are in a separate queue. The
// account id and the last event id directly follow the account in memory, so that a look-up touches
// few cache lines.
type account struct {
	version, balance, eventAt int64
	stored                    int64 // version in the database
	currency                  event.Currency
	idLen, room, eventLen     uint8
	exists                    bool // the account has a balance row
	closed                    bool
	hasParked                 bool // the database may have parked events of the account
	dirty                     bool
	healing                   bool
	decidedOn                 bool // its stored version is among changes.DecidedOn
	unread                    bool // the account was not read from the database yet
	assumed                   bool // assumed to be new; while unread, only a candidate for that
	dropped                   bool // removed from the table, so look-ups do not find it
	spilled                   bool // its last event id is in table.longer, because the id exceeds room
}

const (
	accountBytes = int(unsafe.Sizeof(account{}))
	wordBytes    = 8
	slabWords    = 2048 // 16 KiB; small, because up to 256 partitions have a partly filled one
	slotBytes    = 8
	leastSlots   = 64

	// eventRoom is the first size reserved for the last event id: the length of a UUID. After a
	// longer id was stored, new accounts get more room, up to mostRoom.
	eventRoom = 36
	mostRoom  = 64
)

// slab is memory for accounts, aligned for their fields.
type slab [slabWords]uint64

// slot is an entry of the index: 32 bits of the id's hash, and the account's word offset plus 1. An
// empty slot is 0.
type slot uint64

// A table finds accounts by id. Its index uses open addressing, and the accounts are in slabs.
type table struct {
	seed   maphash.Seed
	index  []slot // its length is a power of two
	taken  int    // number of used slots
	slabs  []*slab
	used   int // used words of the last slab
	room   int
	longer map[*account]string // last event ids that exceed the reserved room
	spilt  int                 // bytes of these ids
}

func newTable(seed maphash.Seed) *table {
	return &table{seed: seed, used: slabWords, room: eventRoom, longer: map[*account]string{}}
}

func (t *table) bytes() int {
	return len(t.slabs)*slabWords*wordBytes + len(t.index)*slotBytes + t.spilt
}

func (t *table) hash(id string) uint64 { return maphash.String(t.seed, id) }

// mask returns a bit mask for those bits of a hash that select a slot.
func (t *table) mask() uint64 { return uint64(len(t.index)) - 1 }

func (t *table) at(s slot) *account {
	at := uint32(s) - 1                                                     //nolint:gosec // G115: the lower half
	return (*account)(unsafe.Pointer(&t.slabs[at/slabWords][at%slabWords])) //nolint:gosec // add put it there
}

// get finds the account by its id and the id's hash, or returns nil.
func (t *table) get(id string, hash uint64) *account {
	if t.taken == 0 {
		return nil
	}
	mask := t.mask()
	for i := hash & mask; ; i = (i + 1) & mask {
		s := t.index[i]
		if s == 0 {
			return nil
		}
		if uint32(s>>32) != uint32(hash) { //nolint:gosec // these bits are compared
			continue
		}
		if a := t.at(s); !a.dropped && t.idOf(a) == id {
			return a
		}
	}
}

// warm loads into the processor's cache most of the memory that get will read for the hashes. These
// loads overlap, whereas separate calls of get would each wait for memory. The sum has no meaning,
// but without it the compiler could remove the loads.
func (t *table) warm(hashes []uint64) (sum int64) {
	if t.taken == 0 {
		return 0
	}
	mask := t.mask()
	for _, h := range hashes {
		sum += int64(t.index[h&mask]) //nolint:gosec // no meaning
	}
	for _, h := range hashes {
		if s := t.index[h&mask]; s != 0 {
			sum += t.at(s).version
		}
	}
	return sum
}

// add adds an empty account. The id must not be in the table and has at most 255 bytes.
func (t *table) add(id string, hash uint64) *account {
	if 4*(t.taken+1) > 3*len(t.index) {
		t.grow()
	}
	words := (accountBytes + len(id) + t.room + wordBytes - 1) / wordBytes
	if t.used+words > slabWords {
		t.slabs, t.used = append(t.slabs, new(slab)), 0
	}
	at := (len(t.slabs)-1)*slabWords + t.used
	t.used += words
	s := slot(hash<<32 | uint64(at+1)) //nolint:gosec // 32 GiB of accounts
	t.put(s)
	t.taken++
	a := t.at(s)
	*a = account{idLen: uint8(len(id)), room: uint8(t.room)} //nolint:gosec // bounded
	copy(t.text(a, 0, len(id)), id)
	return a
}

func (t *table) put(s slot) {
	mask := t.mask()
	i := uint64(s>>32) & mask
	for t.index[i] != 0 {
		i = (i + 1) & mask
	}
	t.index[i] = s
}

func (t *table) grow() {
	before := t.index
	t.index = make([]slot, max(leastSlots, 2*len(before)))
	for _, s := range before {
		if s != 0 {
			t.put(s)
		}
	}
}

// text returns n bytes of the memory after an account.
func (t *table) text(a *account, from, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(a), accountBytes+from)), n) //nolint:gosec // add made room
}

// idOf returns the account's id. Its bytes never change, so the string stays valid.
func (t *table) idOf(a *account) string {
	if a.idLen == 0 {
		return ""
	}
	b := t.text(a, 0, int(a.idLen))
	return unsafe.String(&b[0], len(b)) //nolint:gosec // see above
}

// state returns the account's state. LastEventID shares the account's memory and is valid until set
// is called.
func (t *table) state(a *account) projection.Account {
	s := projection.Account{
		Version: a.version, Balance: a.balance, Currency: a.currency, Closed: a.closed, LastEventAt: a.eventAt,
	}
	switch {
	case a.spilled:
		s.LastEventID = t.longer[a]
	case a.eventLen > 0:
		b := t.text(a, int(a.idLen), int(a.eventLen))
		s.LastEventID = unsafe.String(&b[0], len(b)) //nolint:gosec // see above
	}
	return s
}

func (t *table) set(a *account, s projection.Account) {
	a.version, a.balance, a.currency, a.closed, a.eventAt = s.Version, s.Balance, s.Currency, s.Closed, s.LastEventAt
	if a.spilled {
		t.spilt -= len(t.longer[a])
		delete(t.longer, a)
	}
	n := len(s.LastEventID)
	if a.spilled = n > int(a.room); a.spilled {
		t.longer[a] = strings.Clone(s.LastEventID) // a copy, because it may share the memory of a whole fetch
		t.spilt += n
		t.room = max(t.room, min(n, mostRoom))
		return
	}
	a.eventLen = uint8(n) //nolint:gosec // at most room
	copy(t.text(a, int(a.idLen), n), s.LastEventID)
}

// drop hides the account from look-ups. The account's memory is released with the table.
func (t *table) drop(a *account) { a.dropped = true }

// cache holds accounts in two generations. The hot generation has the accounts that were used since
// the last call of turn. The cold generation has the accounts that were last used between the last
// two calls of turn, if there is memory for both generations. This approximates an LRU cache
// without a list.
type cache struct {
	hot, cold *table
}

func newCache() cache {
	seed := maphash.MakeSeed()
	return cache{hot: newTable(seed), cold: newTable(seed)}
}

func (c *cache) hash(id string) uint64 { return c.hot.hash(id) }

// get returns an account that is in memory, or nil.
func (c *cache) get(id string, hash uint64) *account {
	if a := c.hot.get(id, hash); a != nil {
		return a
	}
	old := c.cold.get(id, hash)
	if old == nil || old.hasParked || old.unread { // it is read again from the database
		return nil
	}
	a := c.hot.add(id, hash)
	c.hot.set(a, c.cold.state(old))
	a.stored, a.exists, a.assumed = old.stored, old.exists, old.assumed
	c.cold.drop(old)
	return a
}

// keepWithin drops the cold generation if both generations together need more than n bytes.
func (c *cache) keepWithin(n int) {
	if c.cold.taken > 0 && c.hot.bytes()+c.cold.bytes() > n {
		c.cold = newTable(c.hot.seed)
	}
}

// turn makes the hot generation the cold one, and drops the previous cold generation. No changes
// may be pending.
func (c *cache) turn() {
	c.hot, c.cold = newTable(c.hot.seed), c.hot
}
