package ledger

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
)

const (
	// DefaultMemory is what a Sorter holds before it uses files: about two million
	// accounts.
	DefaultMemory = 64 << 20
	pageBytes     = 1 << 20
	// indexBytes is what finding one entry again costs.
	indexBytes = 8
)

// Sorter takes entries in any order and gives them back by account id, in the order
// of bytes, which is the collation "C" of PostgreSQL. What does not fit its memory
// waits in files, which have no name and so are gone with the process.
type Sorter struct {
	memory int
	folder string
	pages  [][]byte // of encoded entries, none across two pages
	index  []uint64 // page << 32 | offset
	runs   []*os.File
	buf    []byte
}

// NewSorter returns a Sorter that holds about so many bytes in memory and the rest
// in files in folder; "" is the system's folder for such files. Close it.
func NewSorter(memory int, folder string) *Sorter { return &Sorter{memory: memory, folder: folder} }

// Add takes an entry in.
func (s *Sorter) Add(e Entry) error {
	s.buf = encode(s.buf[:0], e)
	last := len(s.pages) - 1
	if last < 0 || len(s.pages[last])+len(s.buf) > pageBytes {
		if (last+2)*pageBytes+len(s.index)*indexBytes > s.memory && last >= 0 {
			if err := s.spill(); err != nil {
				return err
			}
		}
		s.pages = append(s.pages, make([]byte, 0, pageBytes))
		last = len(s.pages) - 1
	}
	s.index = append(s.index, uint64(last)<<32|uint64(len(s.pages[last]))) //nolint:gosec // a page is small
	s.pages[last] = append(s.pages[last], s.buf...)
	return nil
}

// encode lays an entry out so that its account id comes first.
func encode(b []byte, e Entry) []byte {
	b = binary.AppendUvarint(b, uint64(len(e.AccountID)))
	b = append(b, e.AccountID...)
	b = binary.AppendUvarint(b, uint64(e.Version)) //nolint:gosec // not negative
	b = binary.AppendUvarint(b, uint64(e.Place))   //nolint:gosec // not negative
	for _, text := range [...]string{e.Balance, e.Currency, e.Status, e.LastEventID} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	return b
}

func (s *Sorter) at(i uint64) []byte { return s.pages[i>>32][uint32(i):] } //nolint:gosec // the lower half

// id is the account id of an encoded entry.
func id(encoded []byte) []byte {
	n, width := binary.Uvarint(encoded)
	return encoded[width:][:n]
}

// sort puts what is in memory in order. Of one account, the first read comes first.
func (s *Sorter) sort() {
	slices.SortFunc(s.index, func(a, b uint64) int {
		if order := bytes.Compare(id(s.at(a)), id(s.at(b))); order != 0 {
			return order
		}
		if a < b {
			return -1
		}
		return 1
	})
}

// spill moves what is in memory to a file.
func (s *Sorter) spill() error {
	s.sort()
	file, err := s.file()
	if err != nil {
		return fmt.Errorf("sort the ledger: %w", err)
	}
	s.runs = append(s.runs, file)
	if err := s.write(file); err != nil {
		return fmt.Errorf("sort the ledger: %w", err)
	}
	clear(s.pages) // their memory goes back before there are new ones
	s.pages, s.index = s.pages[:0], s.index[:0]
	return nil
}

// file makes a file that nobody else can open.
func (s *Sorter) file() (*os.File, error) {
	file, err := os.CreateTemp(s.folder, "ledger-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Close gives the files back.
func (s *Sorter) Close() error {
	var errs []error
	for _, run := range s.runs {
		errs = append(errs, run.Close())
	}
	s.pages, s.index, s.runs = nil, nil, nil
	return errors.Join(errs...)
}
