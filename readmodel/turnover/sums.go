package turnover

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"projector/projection/event"
)

// cell is a row of the table.
type cell struct {
	day      int64 // days since the Unix epoch, UTC
	currency event.Currency
}

// sums holds the amounts to add, by row.
type sums map[cell]*turnover

type turnover struct {
	credited, debited total
	events            int64
}

// total is a sum of amounts in minor units. It may exceed int64.
type total struct {
	low  int64
	high big.Int
}

func (t *total) add(minor int64) {
	sum, fits := event.Add(t.low, minor)
	if !fits {
		t.high.Add(&t.high, big.NewInt(t.low))
		sum = minor
	}
	t.low = sum
}

func (t *total) numeric() pgtype.Numeric {
	sum := big.NewInt(t.low)
	return pgtype.Numeric{Int: sum.Add(sum, &t.high), Valid: true}
}

const microsPerDay = 24 * 60 * 60 * 1_000_000

// dayOf returns the UTC day of a time in microseconds since the Unix epoch.
func dayOf(micros int64) int64 {
	day := micros / microsPerDay
	if micros%microsPerDay < 0 {
		day--
	}
	return day
}

// add adds a credit or a debit. It ignores other events.
func (s sums) add(ev *event.Event) {
	if !ev.Type.MovesMoney() {
		return
	}
	c := cell{dayOf(ev.OccurredAt), ev.Currency}
	t := s[c]
	if t == nil {
		t = &turnover{}
		s[c] = t
	}
	t.events++
	if ev.Signed() > 0 {
		t.credited.add(ev.Amount)
	} else {
		t.debited.add(ev.Amount)
	}
}

// columns returns the sums as the arrays that turnover_add.sql unnests, sorted.
func (s sums) columns() []any {
	cells := slices.SortedFunc(maps.Keys(s), func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.day, b.day), strings.Compare(a.currency.Code(), b.currency.Code()))
	})
	n := len(cells)
	var (
		days              = make([]time.Time, n)
		currencies        = make([]string, n)
		digits            = make([]int16, n)
		credited, debited = make([]pgtype.Numeric, n), make([]pgtype.Numeric, n)
		events            = make([]int64, n)
	)
	for i, c := range cells {
		t := s[c]
		days[i], currencies[i] = time.Unix(c.day*24*60*60, 0).UTC(), c.currency.Code()
		digits[i] = int16(c.currency.Digits()) //nolint:gosec // 0 to 4
		credited[i], debited[i], events[i] = t.credited.numeric(), t.debited.numeric(), t.events
	}
	return []any{days, currencies, digits, credited, debited, events}
}
