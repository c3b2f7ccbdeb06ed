package ledger

import (
	"fmt"
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
