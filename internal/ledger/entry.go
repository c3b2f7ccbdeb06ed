// Package ledger holds the read model against an authoritative ledger: it reads the
// ledger's accounts, sorts them within bounded memory, and compares.
//
//	CSV or query ──Entry──▶ Sorter ──ascending──▶ Comparison ◀──ascending── read model
//
// It knows no database. Its errors name places, fields and accounts, never a
// balance.
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
	"strconv"
	"strings"
	"unicode/utf8"
)

// The columns of a ledger.
const (
	FieldAccount = "account_id"
	FieldVersion = "version"
	FieldBalance = "balance"
)

// Entry is one account as the ledger has it.
type Entry struct {
	AccountID string
	Version   int64
	Balance   string // as Canonical writes it
	Place     int64  // the line or row it was read from, from 1
}

// FieldError says which field of an entry cannot be what it has to be. It carries no
// value.
type FieldError struct {
	Field  string
	Reason string
}

// Error implements error.
func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// maxAccountID is the longest account id there is, in bytes.
const maxAccountID = 200

// Parse makes an entry of texts, or answers a *FieldError.
func Parse(account, version, balance string) (Entry, error) {
	switch {
	case account == "":
		return Entry{}, &FieldError{FieldAccount, "is empty"}
	case len(account) > maxAccountID:
		return Entry{}, &FieldError{FieldAccount, fmt.Sprintf("is longer than %d bytes", maxAccountID)}
	case !utf8.ValidString(account) || strings.ContainsRune(account, 0):
		return Entry{}, &FieldError{FieldAccount, "is no UTF-8 text, or has a NUL in it"}
	}
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil || n < 0 {
		return Entry{}, &FieldError{FieldVersion, "is not an integer of 0 or more"}
	}
	amount, ok := Canonical(balance)
	if !ok {
		return Entry{}, &FieldError{FieldBalance, "is not a decimal number such as -12.50"}
	}
	return Entry{AccountID: account, Version: n, Balance: amount}, nil
}

// maxDigits bounds a balance: no account needs more, and a broken file may have it.
const maxDigits = 100

// Canonical writes a decimal number in the one way in which equal numbers are equal
// texts: 10.50 is 10.5, and -0 is 0. False when text is no such number.
func Canonical(text string) (string, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	if len(digits) > maxDigits || !isDigits(whole) || point && !isDigits(fraction) {
		return "", false
	}
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	if whole == "" {
		whole = "0"
	}
	number := whole
	if fraction != "" {
		number += "." + fraction
	}
	if negative && number != "0" {
		number = "-" + number
	}
	return number, true
}

func isDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return text != ""
}

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
