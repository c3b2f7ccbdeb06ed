package accounts

import (
	"hash/maphash"
	"strings"
	"unsafe"

	"projector/projection"
	"projector/projection/event"
)

// account is an account in memory: the database's row and what is pending on it.
// It holds no pointer, and neither does the table, so that the garbage collector
// does not walk through hundreds of thousands of accounts again and again. What
// few accounts have is in a separate queue. The account's id and last event id
// follow it directly, so that looking one up touches few cache lines.
type account struct {
	version, balance, eventAt int64
	stored                    int64 // version in the database
	currency                  event.Currency
	idLen, room, eventLen     uint8
	exists                    bool // it has a balance row
	closed                    bool
	hasParked                 bool // the database may have parked events of it
	dirty                     bool
	healing                   bool
	decidedOn                 bool // its stored version is among changes.DecidedOn
	unread                    bool // a place kept for what the database knows of it
	assumed                   bool // to be new; while it is unread: it may be, by its first event
	dropped                   bool // no longer to be found
	spilled                   bool // its last event id is longer than room
}

const (
	accountBytes = int(unsafe.Sizeof(account{}))
	wordBytes    = 8
	slabWords    = 2048 // 16 KiB: with 256 partitions there are as many unfilled ones
	slotBytes    = 8
	leastSlots   = 64

	// eventRoom is what the last event id is given at first: a UUID's length. Where
	// longer ones are seen, accounts added later get more, up to mostRoom.
	eventRoom = 36
	mostRoom  = 64
)

// slab is memory for accounts, aligned for their fields.
type slab [slabWords]uint64

// slot is a place of the index: 32 bits of the id's hash, and one more than where the
// account is, in words. 0 is empty.
type slot uint64

// table finds accounts by id: an index with open addressing over slabs.
type table struct {
	seed   maphash.Seed
	index  []slot // a power of two of them
	taken  int    // slots
	slabs  []*slab
	used   int // words of the last slab
	room   int
	longer map[*account]string // last event ids that are spilled
	spilt  int                 // bytes of them
}

func newTable(seed maphash.Seed) *table {
	return &table{seed: seed, used: slabWords, room: eventRoom, longer: map[*account]string{}}
}

// bytes is how much memory the table takes.
func (t *table) bytes() int {
	return len(t.slabs)*slabWords*wordBytes + len(t.index)*slotBytes + t.spilt
}

func (t *table) hash(id string) uint64 { return maphash.String(t.seed, id) }

// mask takes a place of the index from a hash.
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

// warm has the processor load what get will read, for many hashes at once: the loads
// overlap, while those of one get after another wait for memory each. The sum has no
// meaning; it keeps the loads from being left out.
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

// add makes an empty account. The id must not be in the table; it has at most 255 bytes.
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

// put stores a slot that is not there.
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

// text is n of the bytes after an account.
func (t *table) text(a *account, from, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(a), accountBytes+from)), n) //nolint:gosec // add made room
}

// idOf is the account's id. Its bytes never change, so the string may be kept.
func (t *table) idOf(a *account) string {
	if a.idLen == 0 {
		return ""
	}
	b := t.text(a, 0, int(a.idLen))
	return unsafe.String(&b[0], len(b)) //nolint:gosec // see above
}

// state is the account's state. Its LastEventID is a view that is valid until the
// account is set again.
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

// set copies a state into the account.
func (t *table) set(a *account, s projection.Account) {
	a.version, a.balance, a.currency, a.closed, a.eventAt = s.Version, s.Balance, s.Currency, s.Closed, s.LastEventAt
	if a.spilled {
		t.spilt -= len(t.longer[a])
		delete(t.longer, a)
	}
	n := len(s.LastEventID)
	if a.spilled = n > int(a.room); a.spilled {
		t.longer[a] = strings.Clone(s.LastEventID) // it may be a view of a whole fetch
		t.spilt += n
		t.room = max(t.room, min(n, mostRoom))
		return
	}
	a.eventLen = uint8(n) //nolint:gosec // at most room
	copy(t.text(a, int(a.idLen), n), s.LastEventID)
}

// drop makes the account no longer to be found. Its memory is freed with the table.
func (t *table) drop(a *account) { a.dropped = true }

// cache remembers accounts in two generations: those touched since the last turn, and
// those touched in the one before as long as there is room for both. It approximates
// least-recently-used without a list.
type cache struct {
	hot, cold *table
}

func newCache() cache {
	seed := maphash.MakeSeed()
	return cache{hot: newTable(seed), cold: newTable(seed)}
}

func (c *cache) hash(id string) uint64 { return c.hot.hash(id) }

// get finds an account that is known, or returns nil.
func (c *cache) get(id string, hash uint64) *account {
	if a := c.hot.get(id, hash); a != nil {
		return a
	}
	old := c.cold.get(id, hash)
	if old == nil || old.hasParked || old.unread { // what the database has of it is read afresh
		return nil
	}
	a := c.hot.add(id, hash)
	c.hot.set(a, c.cold.state(old))
	a.stored, a.exists, a.assumed = old.stored, old.exists, old.assumed
	c.cold.drop(old)
	return a
}

// keepWithin drops what is cold where both take more than so many bytes.
func (c *cache) keepWithin(n int) {
	if c.cold.taken > 0 && c.hot.bytes()+c.cold.bytes() > n {
		c.cold = newTable(c.hot.seed)
	}
}

// turn makes what is hot cold and drops what was cold. Nothing may be pending.
func (c *cache) turn() {
	c.hot, c.cold = newTable(c.hot.seed), c.hot
}
