package ledger

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
)

// ReadCSV streams the entries of a CSV file whose header names account_id, version
// and balance, in any order and beside other columns. An error names line and column
// and ends the iteration.
func ReadCSV(file io.Reader) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		reader := csv.NewReader(withoutMark(file))
		reader.ReuseRecord = true
		columns, err := readHeader(reader)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for {
			row, err := reader.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			var entry Entry
			if err == nil {
				entry, err = columns.entry(reader, row)
			}
			if !yield(entry, err) || err != nil {
				return
			}
		}
	}
}

// withoutMark passes over the byte order mark that spreadsheets put at the start.
func withoutMark(file io.Reader) io.Reader {
	buffered := bufio.NewReaderSize(file, 256<<10)
	mark := []byte("\ufeff")
	if start, err := buffered.Peek(len(mark)); err == nil && bytes.Equal(start, mark) {
		_, _ = buffered.Discard(len(mark)) // it is there
	}
	return buffered
}

// Columns is where the ledger's columns stand among others.
type Columns struct{ Account, Version, Balance int }

// FindColumns finds the ledger's columns by name, or says which is missing or there twice.
func FindColumns(names []string) (Columns, error) {
	var h Columns
	for _, wanted := range []struct {
		name string
		at   *int
	}{{FieldAccount, &h.Account}, {FieldVersion, &h.Version}, {FieldBalance, &h.Balance}} {
		*wanted.at = slices.Index(names, wanted.name)
		switch {
		case *wanted.at < 0:
			return h, fmt.Errorf("no column is called %s: account_id, version and balance are needed", wanted.name)
		case slices.Contains(names[*wanted.at+1:], wanted.name):
			return h, fmt.Errorf("two columns are called %s", wanted.name)
		}
	}
	return h, nil
}

func readHeader(reader *csv.Reader) (Columns, error) {
	names, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return Columns{}, errors.New("is empty: a header with account_id,version,balance is needed")
	}
	if err != nil {
		return Columns{}, err
	}
	h, err := FindColumns(names)
	if err != nil {
		return h, fmt.Errorf("line 1: %w", err)
	}
	return h, nil
}

func (h Columns) entry(reader *csv.Reader, row []string) (Entry, error) {
	entry, err := Parse(row[h.Account], row[h.Version], row[h.Balance])
	var wrong *FieldError
	if errors.As(err, &wrong) {
		at := map[string]int{FieldAccount: h.Account, FieldVersion: h.Version, FieldBalance: h.Balance}[wrong.Field]
		line, column := reader.FieldPos(at)
		return entry, fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	line, _ := reader.FieldPos(0)
	entry.Place = int64(line)
	return entry, err
}
