package testbank

import (
	"cmp"
	"fmt"
	"iter"
	"math/big"
	"strings"
	"time"
)

// Statement returns the expected rows of account_statement. There is one row for each account and
// version, from the first readable event of this version. It is for streams without conflicting
// events.
func Statement(records []Record) map[string]string {
	rows := map[string]string{}
	for d := range firstEvents(records) {
		moved, correlation := "-", cmp.Or(d.correlation, "-")
		if d.amount != nil {
			minor := new(big.Int).Set(d.amount)
			if d.kind == "FundsDebited" {
				minor.Neg(minor)
			}
			moved = decimalText(minor, digits[d.currency])
		}
		line := []string{d.id, d.kind, moved}
		if d.currency != "" {
			line = append(line, d.currency)
		}
		line = append(line, d.at.Format("2006-01-02T15:04:05.000000"), correlation)
		rows[fmt.Sprint(d.account, " ", d.version)] = strings.Join(line, " ")
	}
	return rows
}

// Turnover returns the expected rows of daily_turnover: one for each day and currency.
func Turnover(records []Record) map[string]string {
	type sums struct {
		credited, debited big.Int
		events, decimals  int
	}
	days := map[string]*sums{}
	for d := range firstEvents(records) {
		if d.amount == nil {
			continue
		}
		key := d.at.Format(time.DateOnly) + " " + d.currency
		s := days[key]
		if s == nil {
			s = &sums{decimals: digits[d.currency]}
			days[key] = s
		}
		s.events++
		side := &s.credited
		if d.kind == "FundsDebited" {
			side = &s.debited
		}
		side.Add(side, d.amount)
	}
	rows := map[string]string{}
	for key, s := range days {
		rows[key] = fmt.Sprint(decimalText(&s.credited, s.decimals), " ", decimalText(&s.debited, s.decimals), " ", s.events)
	}
	return rows
}

// firstEvents returns the first readable event of each account and version.
func firstEvents(records []Record) iter.Seq[*decoded] {
	type key struct {
		account string
		version int64
	}
	return func(yield func(*decoded) bool) {
		o, seen := New(), map[key]bool{}
		for i := range records {
			d := o.decode(&records[i])
			at := key{d.account, d.version}
			if !d.identified || d.class != "" || seen[at] {
				continue
			}
			seen[at] = true
			if !yield(&d) {
				return
			}
		}
	}
}
