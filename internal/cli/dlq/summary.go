package dlq

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"projector/dlq"
	"projector/internal/cli/output"
	"projector/internal/replay"
)

type summaryCmd struct {
	readFlags
}

type summaryDocument struct {
	Class         string `json:"class"`
	Status        string `json:"status"`
	Records       int64  `json:"records"`
	Accounts      int64  `json:"accounts"` // number of different known accounts
	FirstFailedAt string `json:"first_failed_at"`
	LastFailedAt  string `json:"last_failed_at"`
	Example       string `json:"example"` // partition and offset of the first one, for dlq show
}

func (c *summaryCmd) Run(ctx context.Context, std *output.Streams) error {
	s, done, err := c.reading(ctx, std)
	if err != nil {
		return err
	}
	defer done()
	sums := newSummary()
	err = s.Each(ctx, func(d *replay.DeadLetter) error {
		sums.add(d)
		return nil
	})
	s.shown.Done()
	if err != nil {
		return err
	}
	return errors.Join(c.print(std, s, sums), s.finish(ctx, std))
}

func (c *summaryCmd) print(std *output.Streams, s *scan, sums *summary) error {
	rows := c.Rows(std.Out, "CLASS", output.Left("CLASS", 20), output.Left("STATUS", 9), output.Right("RECORDS", 8),
		output.Right("ACCOUNTS", 8), output.Left("FIRST", 7), output.Left("LAST", 7), output.Left("EXAMPLE", 9))
	total, now := int64(0), time.Now()
	for _, g := range sums.sorted() {
		d := summaryDocument{
			Class: g.class, Status: string(g.status), Records: g.records, Accounts: int64(len(g.accounts)),
			FirstFailedAt: output.TimeText(g.first), LastFailedAt: output.TimeText(g.last), Example: g.example,
		}
		rows.Add(d, g.class, g.status, g.records, d.Accounts, output.AgeText(now.Sub(g.first)), output.AgeText(now.Sub(g.last)), g.example)
		total += g.records
	}
	if rows.Len() > 1 {
		rows.Total("total", " ", total)
	}
	return rows.End(s.emptyResult(c.nothing()))
}

// summary counts dead letters. Its memory depends on the number of accounts in each class and
// status, and not on the number of dead letters.
type summary struct {
	groups map[groupKey]*group
	seed   maphash.Seed
}

func newSummary() *summary { return &summary{map[groupKey]*group{}, maphash.MakeSeed()} }

type groupKey struct {
	class  string
	status dlq.Status
}

type group struct {
	groupKey
	records     int64
	accounts    map[uint64]struct{} // 64-bit hashes of account ids
	first, last time.Time
	example     string // place of the first one
}

func (s *summary) add(d *replay.DeadLetter) {
	e := &d.Entry
	key := groupKey{string(e.Class), d.Status}
	g := s.groups[key]
	if g == nil {
		g = &group{groupKey: key, accounts: map[uint64]struct{}{}}
		s.groups[key] = g
	}
	if g.records++; g.records == 1 || e.FailedAt.Before(g.first) {
		g.first, g.example = e.FailedAt, placeOf(e)
	}
	if g.records == 1 || e.FailedAt.After(g.last) {
		g.last = e.FailedAt
	}
	if e.AccountID != "" {
		g.accounts[maphash.String(s.seed, e.AccountID)] = struct{}{}
	}
}

// sorted returns the groups, the largest first.
func (s *summary) sorted() []*group {
	return slices.SortedFunc(maps.Values(s.groups), func(a, b *group) int {
		return cmp.Or(cmp.Compare(b.records, a.records), cmp.Compare(a.class, b.class), cmp.Compare(a.status, b.status))
	})
}
