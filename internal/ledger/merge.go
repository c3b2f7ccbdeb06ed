package ledger

import (
	"bufio"
	"bytes"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
)

// runBuffer is what reading one file back takes.
const runBuffer = 64 << 10

// write appends what is in memory, which is sorted, to a file.
func (s *Sorter) write(file *os.File) error {
	out := bufio.NewWriterSize(file, runBuffer)
	for _, i := range s.index {
		b := s.at(i)
		out.Write(b[:encodedLength(b)])
	}
	return out.Flush()
}

// encodedLength is how long the entry at the start of b is.
func encodedLength(b []byte) int {
	n, at := binary.Uvarint(b)
	at += int(n) //nolint:gosec // a length that was encoded
	for range 2 {
		_, width := binary.Uvarint(b[at:])
		at += width
	}
	for range texts {
		n, width := binary.Uvarint(b[at:])
		at += width + int(n) //nolint:gosec // a length that was encoded
	}
	return at
}

// texts are what stands at the end of an encoded entry.
const texts = 4

// DuplicateError says that the ledger has two entries of one account.
type DuplicateError struct {
	AccountID     string
	First, Second int64 // places
}

// Error implements error.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("account %q is there twice, at %d and at %d", e.AccountID, e.First, e.Second)
}

// Sorted streams all entries by account id. Two of one account are a *DuplicateError.
// An error ends the iteration. Nothing can be added any more; it can be read again.
func (s *Sorter) Sorted() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		s.sort()
		var queue sources
		if err := s.start(&queue); err != nil {
			yield(Entry{}, err)
			return
		}
		heap.Init(&queue)
		var last Entry
		for len(queue) > 0 {
			entry := queue[0].entry
			if entry.AccountID == last.AccountID && last.Place > 0 {
				yield(Entry{}, &DuplicateError{entry.AccountID, last.Place, entry.Place})
				return
			}
			if !yield(entry, nil) {
				return
			}
			last = entry
			if err := queue.advance(); err != nil {
				yield(Entry{}, err)
				return
			}
		}
	}
}

// start opens every run, and what is in memory as the last one.
func (s *Sorter) start(queue *sources) error {
	readers := make([]byteReader, 0, len(s.runs)+1)
	for _, run := range s.runs {
		if _, err := run.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("read the sorted ledger back: %w", err)
		}
		readers = append(readers, bufio.NewReaderSize(run, runBuffer))
	}
	readers = append(readers, &memoryReader{sorter: s})
	for i, r := range readers {
		src := &source{reader: r, number: i}
		err := src.next()
		if errors.Is(err, io.EOF) {
			continue
		}
		if err != nil {
			return err
		}
		*queue = append(*queue, src)
	}
	return nil
}

// byteReader is what decoding needs.
type byteReader interface {
	io.Reader
	io.ByteReader
}

// memoryReader reads the sorted entries in memory one after the other.
type memoryReader struct {
	sorter *Sorter
	next   int
	entry  bytes.Reader
}

func (m *memoryReader) refill() bool {
	if m.entry.Len() > 0 {
		return true
	}
	if m.next == len(m.sorter.index) {
		return false
	}
	b := m.sorter.at(m.sorter.index[m.next])
	m.entry.Reset(b[:encodedLength(b)])
	m.next++
	return true
}

// ReadByte implements io.ByteReader.
func (m *memoryReader) ReadByte() (byte, error) {
	if !m.refill() {
		return 0, io.EOF
	}
	return m.entry.ReadByte()
}

// Read implements io.Reader.
func (m *memoryReader) Read(p []byte) (int, error) {
	if !m.refill() {
		return 0, io.EOF
	}
	return m.entry.Read(p)
}

// source is one sorted run, at its next entry.
type source struct {
	reader byteReader
	number int // the order in which the runs were read
	entry  Entry
}

// next decodes the next entry; io.EOF: there is none.
func (s *source) next() error {
	n, err := binary.ReadUvarint(s.reader)
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	e := Entry{}
	if err == nil {
		e.AccountID, err = readText(s.reader, n)
	}
	for _, number := range []*int64{&e.Version, &e.Place} {
		if err == nil {
			n, err = binary.ReadUvarint(s.reader)
			*number = int64(n) //nolint:gosec // as it was encoded
		}
	}
	for _, text := range [texts]*string{&e.Balance, &e.Currency, &e.Status, &e.LastEventID} {
		if err == nil {
			n, err = binary.ReadUvarint(s.reader)
		}
		if err == nil && n > 0 {
			*text, err = readText(s.reader, n)
		}
	}
	if err != nil {
		return fmt.Errorf("read the sorted ledger back: %w", err)
	}
	s.entry = e
	return nil
}

func readText(r io.Reader, n uint64) (string, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return string(b), err
}

// sources is a heap of runs: the one with the lowest account id first.
type sources []*source

// advance moves the first run on.
func (q *sources) advance() error {
	err := (*q)[0].next()
	if errors.Is(err, io.EOF) {
		heap.Pop(q)
		return nil
	}
	heap.Fix(q, 0)
	return err
}

// Len implements heap.Interface.
func (q sources) Len() int { return len(q) }

// Less implements heap.Interface.
func (q sources) Less(i, j int) bool {
	if order := strings.Compare(q[i].entry.AccountID, q[j].entry.AccountID); order != 0 {
		return order < 0
	}
	return q[i].number < q[j].number
}

// Swap implements heap.Interface.
func (q sources) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *sources) Push(x any) { *q = append(*q, x.(*source)) } //nolint:forcetypeassert // nothing else is pushed

// Pop implements heap.Interface.
func (q *sources) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
