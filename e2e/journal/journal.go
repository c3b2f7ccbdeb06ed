// Package journal is a producer's own book: what happened, once each, and what that
// comes to. How it is delivered, with copies and whole ranges of copies, is made from
// it, and a projection that is right shows what the book says, however it was told.
// It shares no code with the projector.
package journal

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"time"
)

// Fact is one event as the producer knows it.
type Fact struct {
	ID, Kind, Account string
	Version           int64
	At                time.Time
	Minor             int64 // 0: it moves no money
	Currency          string
	Correlation       string
}

// decimals are those of the currencies the producer uses.
var decimals = map[string]int{"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3}

// Write makes a book of n facts about some accounts, in the order in which they
// happened. The same seed makes the same book.
func Write(seed uint64, n, accounts int) []Fact {
	rnd := rand.New(rand.NewPCG(seed, 8))
	versions, facts := make([]int64, accounts), make([]Fact, n)
	codes := []string{"EUR", "EUR", "USD", "JPY", "KWD"}
	for i := range facts {
		a := rnd.IntN(accounts)
		versions[a]++
		f := Fact{
			ID: fmt.Sprintf("%08x-%06x", rnd.Uint32(), i), Account: fmt.Sprintf("acc-%05d", a), Version: versions[a],
			// Over ten days, to the microsecond, and in no order.
			At:       time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rnd.Int64N(10*86400*1_000_000)) * time.Microsecond),
			Currency: codes[a%len(codes)],
		}
		switch kind := rnd.IntN(20); {
		case f.Version == 1:
			f.Kind = "AccountOpened"
		case kind == 0:
			f.Kind = "AccountClosed"
		default:
			f.Kind = []string{"FundsCredited", "FundsDebited"}[kind%2]
			f.Minor = 1 + rnd.Int64N(10_000_000)
		}
		if rnd.IntN(3) == 0 {
			f.Correlation = fmt.Sprint("corr-", rnd.IntN(1000))
		}
		facts[i] = f
	}
	return facts
}

// amount writes minor units as a decimal with all the decimals of the currency.
func amount(minor *big.Int, currency string) string {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals[currency])), nil)
	return new(big.Rat).SetFrac(minor, unit).FloatString(decimals[currency])
}

// Statement is what account_statement must hold: a line for each fact, by account and
// version.
func Statement(facts []Fact) map[string]string {
	rows := map[string]string{}
	for _, f := range facts {
		moved := "-"
		if f.Minor != 0 {
			minor := big.NewInt(f.Minor)
			if f.Kind == "FundsDebited" {
				minor.Neg(minor)
			}
			moved = amount(minor, f.Currency)
		}
		correlation := f.Correlation
		if correlation == "" {
			correlation = "-"
		}
		rows[fmt.Sprint(f.Account, " ", f.Version)] = strings.Join([]string{
			f.ID, f.Kind, moved, f.Currency, f.At.Format("2006-01-02T15:04:05.000000"), correlation,
		}, " ")
	}
	return rows
}

// Turnover is what daily_turnover must hold: a line for each day and currency.
func Turnover(facts []Fact) map[string]string {
	type sums struct {
		credited, debited big.Int
		events            int
		currency          string
	}
	days := map[string]*sums{}
	for _, f := range facts {
		if f.Minor == 0 {
			continue
		}
		key := f.At.Format(time.DateOnly) + " " + f.Currency
		s := days[key]
		if s == nil {
			s = &sums{currency: f.Currency}
			days[key] = s
		}
		s.events++
		side := &s.credited
		if f.Kind == "FundsDebited" {
			side = &s.debited
		}
		side.Add(side, big.NewInt(f.Minor))
	}
	rows := map[string]string{}
	for key, s := range days {
		rows[key] = fmt.Sprint(amount(&s.credited, s.currency), " ", amount(&s.debited, s.currency), " ", s.events)
	}
	return rows
}
