package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
)

const (
	pageBytes = 1 << 20
	// placeBytes is the size of one element of Table.places, in bytes.
	placeBytes = 8
)

// Table holds the entries of a ledger in memory. A typical entry needs about 40 bytes.
type Table struct {
	limit  int
	n      int64
	pages  [][]byte // encoded entries; an entry is never split between pages
	places []uint64 // page << 32 | offset of each entry; Sort fills it in the order of account ids
}

// NewTable returns a table that is full at about limit bytes.
func NewTable(limit int) *Table { return &Table{limit: limit} }

// Len returns the number of entries.
func (t *Table) Len() int64 { return t.n }

// Add stores an entry. It stores nothing and returns false when the table is full.
func (t *Table) Add(e *Entry) bool {
	last := len(t.pages) - 1
	if last < 0 || len(t.pages[last])+mostBytes(e) > pageBytes {
		if (len(t.pages)+1)*pageBytes+int(t.n)*placeBytes > t.limit {
			return false
		}
		t.pages = append(t.pages, make([]byte, 0, pageBytes))
		last++
	}
	t.pages[last] = encode(t.pages[last], e)
	t.n++
	return true
}

// mostBytes is the maximum number of bytes that encode appends for an entry.
func mostBytes(e *Entry) int {
	return len(e.AccountID) + len(e.Balance) + len(e.Currency) + len(e.Status) + len(e.LastEventID) + 7*binary.MaxVarintLen64
}

// encode appends an entry to b. The account id comes first, so that Sort can compare it without
// decoding the entry.
func encode(b []byte, e *Entry) []byte {
	b = appendText(b, e.AccountID)
	b = binary.AppendUvarint(b, uint64(e.Version)) //nolint:gosec // not negative
	b = binary.AppendUvarint(b, uint64(e.Place))   //nolint:gosec // not negative
	for _, text := range [...]string{e.Balance, e.Currency, e.Status, e.LastEventID} {
		b = appendText(b, text)
	}
	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// decode reads the entry at the start of b and returns the bytes after it.
func decode(b []byte) (e Entry, rest []byte) {
	id, b := cutText(b)
	e.AccountID = string(id)
	for _, number := range [...]*int64{&e.Version, &e.Place} {
		n, width := binary.Uvarint(b)
		*number, b = int64(n), b[width:] //nolint:gosec // as it was encoded
	}
	for _, text := range [...]*string{&e.Balance, &e.Currency, &e.Status, &e.LastEventID} {
		var encoded []byte
		encoded, b = cutText(b)
		*text = string(encoded)
	}
	return e, b
}

func cutText(b []byte) (text, rest []byte) {
	n, width := binary.Uvarint(b)
	b = b[width:]
	return b[:n], b[n:]
}

// bytesAt returns the bytes of a page, beginning at the given place.
func (t *Table) bytesAt(place uint64) []byte { return t.pages[place>>32][uint32(place):] } //nolint:gosec // the lower half

// DuplicateError is returned if the ledger has two entries for one account.
type DuplicateError struct {
	AccountID     string
	First, Second int64 // places of the entries
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("account %q is there twice, at %d and at %d", e.AccountID, e.First, e.Second)
}

// Sort sorts the entries by account id. It returns a *DuplicateError if an account has two entries.
func (t *Table) Sort() error {
	t.places = make([]uint64, 0, t.n)
	for i, page := range t.pages {
		for rest := page; len(rest) > 0; {
			t.places = append(t.places, uint64(i)<<32|uint64(len(page)-len(rest))) //nolint:gosec // a page is small
			_, rest = decode(rest)
		}
	}
	slices.SortStableFunc(t.places, func(a, b uint64) int { return bytes.Compare(t.id(a), t.id(b)) })
	for i := 1; i < len(t.places); i++ {
		if bytes.Equal(t.id(t.places[i-1]), t.id(t.places[i])) {
			first, _ := decode(t.bytesAt(t.places[i-1]))
			second, _ := decode(t.bytesAt(t.places[i]))
			return &DuplicateError{first.AccountID, first.Place, second.Place}
		}
	}
	return nil
}

func (t *Table) id(place uint64) []byte {
	id, _ := cutText(t.bytesAt(place))
	return id
}

// Entries returns all entries, sorted by the bytes of the account id. Sort must have been called.
func (t *Table) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, place := range t.places {
			if e, _ := decode(t.bytesAt(place)); !yield(e) {
				return
			}
		}
	}
}

// Ascending returns the entries of a ledger that is already sorted. It checks that they are sorted
// by the bytes of the account id. If an account has two entries, the error is a *DuplicateError.
func Ascending(entries iter.Seq2[Entry, error]) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		var last Entry
		for e, err := range entries {
			switch {
			case err != nil || last.Place == 0 || last.AccountID < e.AccountID:
			case last.AccountID == e.AccountID:
				err = &DuplicateError{e.AccountID, last.Place, e.Place}
			default:
				err = fmt.Errorf("the ledger is not in the order of its account ids: %q comes after %q", e.AccountID, last.AccountID)
			}
			if !yield(e, err) || err != nil {
				return
			}
			last = e
		}
	}
}
