// Package ledger compares the read model with an authoritative ledger. It reads the ledger's
// accounts from a CSV file, which it holds in memory and sorts, or from a sorted query.
//
//	CSV ──Entry──▶ Table ──ascending──▶ Comparison ◀──ascending── read model
//	query, sorted by its database ──▶
//
// The package does not use a database itself. Its errors name lines, fields and accounts, never a
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

// These are the names that the columns must have in the CSV file or in the query's result.
const (
	FieldAccount   = "account_id"
	FieldVersion   = "version"
	FieldBalance   = "balance"
	FieldCurrency  = "currency"
	FieldStatus    = "status"
	FieldLastEvent = "last_event_id"
)

// fields is the number of columns.
const fields = 6

var fieldNames = [fields]string{FieldAccount, FieldVersion, FieldBalance, FieldCurrency, FieldStatus, FieldLastEvent}

// Layout says which columns of a ledger are read. They are the first columns of fieldNames. The
// field read is how many are read, and needed is how many of these must be present.
type Layout struct{ needed, read int }

// Balances is the layout for comparing balances. Openings is the layout for the initial state of
// accounts.
var (
	Balances = Layout{needed: 3, read: 3}
	Openings = Layout{needed: 4, read: fields}
)

// Entry is an account of the ledger.
type Entry struct {
	AccountID string
	Version   int64
	Balance   string // in the form that Canonical returns
	Place     int64  // number of the line or row, from 1

	// These fields are set only with the layout Openings. They contain the text from the ledger.
	// They are empty if they are not known.
	Currency, Status, LastEventID string
}

// FieldError says which field of an entry is invalid and why. It does not contain the value.
type FieldError struct {
	Field  string
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// maxID is the maximum length of an account id, event id, currency or status, in bytes.
const maxID = 200

// Parse makes an entry from the texts of its columns, which must be in the order of fieldNames. It
// returns a *FieldError if a text is invalid.
func Parse(texts [fields]string) (Entry, error) {
	account, version, balance := texts[0], texts[1], texts[2]
	if account == "" {
		return Entry{}, &FieldError{FieldAccount, "is empty"}
	}
	for i, text := range texts {
		switch {
		case i == 1 || i == 2: // checked below
		case len(text) > maxID:
			return Entry{}, &FieldError{fieldNames[i], fmt.Sprintf("is longer than %d bytes", maxID)}
		case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
			return Entry{}, &FieldError{fieldNames[i], "is no UTF-8 text, or has a NUL in it"}
		}
	}
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil || n < 0 {
		return Entry{}, &FieldError{FieldVersion, "is not an integer of 0 or more"}
	}
	amount, ok := Canonical(balance)
	if !ok {
		return Entry{}, &FieldError{FieldBalance, "is not a decimal number such as -12.50"}
	}
	return Entry{AccountID: account, Version: n, Balance: amount, Currency: texts[3], Status: texts[4], LastEventID: texts[5]}, nil
}

// maxDigits is the maximum length of a balance without its sign. The limit is needed because a
// broken file may contain very long texts.
const maxDigits = 100

// Canonical returns the same text for equal decimal numbers: 10.50 becomes 10.5, and -0
// becomes 0. It returns false if text is not a decimal number.
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

// ReadCSV streams the entries of a CSV file. The header names the columns, which may be in any
// order. Unknown columns are ignored. An error in an entry names the line and the column. Every
// error ends the iteration.
func ReadCSV(file io.Reader, layout Layout) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		lines := &boundedLines{file: file, left: maxLine}
		reader := csv.NewReader(withoutMark(lines))
		reader.ReuseRecord = true
		columns, err := layout.readHeader(reader)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		for last := 1; ; {
			lines.left = maxLine
			row, err := reader.Read()
			switch {
			case errors.Is(err, io.EOF):
				return
			case errors.Is(err, errLongLine):
				err = fmt.Errorf("line %d: %w", last+1, err)
			case err == nil:
				last, _ = reader.FieldPos(len(row) - 1)
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

// maxLine is the maximum length of a line, in bytes. The limit is needed because a quote that is
// never closed makes the rest of the file one line.
const maxLine = 16 << 20

var errLongLine = fmt.Errorf("is longer than %d MiB: is a quote in it never closed?", maxLine>>20)

// boundedLines reads a file. It fails if a line is longer than maxLine.
type boundedLines struct {
	file io.Reader
	left int // how much the present line may still take; the caller sets it for each line
}

func (b *boundedLines) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errLongLine
	}
	n, err := b.file.Read(p)
	b.left -= n
	return n, err
}

// withoutMark skips the byte order mark that spreadsheets write at the start.
func withoutMark(file io.Reader) io.Reader {
	buffered := bufio.NewReaderSize(file, 256<<10)
	mark := []byte("\ufeff")
	if start, err := buffered.Peek(len(mark)); err == nil && bytes.Equal(start, mark) {
		_, _ = buffered.Discard(len(mark)) // cannot fail, because Peek has read these bytes
	}
	return buffered
}

// Columns contains the index of each column of fieldNames, in that order. The index is -1 if the
// column is not present.
type Columns [fields]int

// FindColumns finds the columns by name. It returns an error if a needed column is missing or if a
// column is present twice.
func (l Layout) FindColumns(names []string) (Columns, error) {
	h := Columns{-1, -1, -1, -1, -1, -1}
	for i, name := range fieldNames[:l.read] {
		h[i] = slices.Index(names, name)
		switch {
		case h[i] < 0 && i < l.needed:
			return h, fmt.Errorf("no column is called %s; the header, or the columns of the query, must have %s", name, l.header())
		case h[i] >= 0 && slices.Contains(names[h[i]+1:], name):
			return h, fmt.Errorf("two columns are called %s", name)
		}
	}
	return h, nil
}

// header returns the names of the needed columns.
func (l Layout) header() string { return strings.Join(fieldNames[:l.needed], ",") }

// Texts are the texts of an entry's columns, in the order of fieldNames. A text is nil if it is
// null or if the column is not present.
type Texts [fields]*string

// ParseNullable is like Parse, but all columns except the account, the version and the balance may
// be null. For example, an account may not have a currency yet.
func ParseNullable(texts Texts) (Entry, error) {
	var plain [fields]string
	for i, text := range texts {
		if text != nil {
			plain[i] = *text
		} else if i < Balances.needed {
			return Entry{}, &FieldError{fieldNames[i], "is null"}
		}
	}
	return Parse(plain)
}

func (l Layout) readHeader(reader *csv.Reader) (Columns, error) {
	names, err := reader.Read()
	if errors.Is(err, io.EOF) {
		return Columns{}, fmt.Errorf("is empty: a header with %s is needed", l.header())
	}
	if errors.Is(err, errLongLine) {
		err = fmt.Errorf("line 1: %w", err)
	}
	if err != nil {
		return Columns{}, err
	}
	h, err := l.FindColumns(names)
	if err != nil {
		return h, fmt.Errorf("line 1: %w", err)
	}
	return h, nil
}

func (h Columns) entry(reader *csv.Reader, row []string) (Entry, error) {
	var texts [fields]string
	for i, at := range h {
		if at >= 0 {
			texts[i] = row[at]
		}
	}
	entry, err := Parse(texts)
	if wrong, is := errors.AsType[*FieldError](err); is {
		line, column := reader.FieldPos(h[slices.Index(fieldNames[:], wrong.Field)])
		return entry, fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	line, _ := reader.FieldPos(0)
	entry.Place = int64(line)
	return entry, err
}
