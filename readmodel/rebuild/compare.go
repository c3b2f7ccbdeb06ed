package rebuild

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"projector/sql"
)

// CatchUp brings the rebuilt tables exactly to the given positions of the live tables.
type CatchUp func(ctx context.Context, positions []TopicPosition) error

// CompareOptions are the options of a comparison.
type CompareOptions struct {
	Topic   string
	Partial bool // the topic has lost records, so a swap leaves rows that exist only in the live tables
	List    int  // the largest number of differences in Report.Differences
}

// Compare compares a snapshot of the live tables with the rebuilt tables. The function catchUp has
// to bring the rebuilt tables exactly to the positions in the snapshot. Compare locks no rows of
// the live tables. It stores the differences in tables, for Swap.
func (s *Shadow) Compare(ctx context.Context, opts CompareOptions, catchUp CatchUp) (Report, error) {
	c := newComparison(s, opts)
	for _, t := range append(s.locked(), s.markers()...) {
		if _, err := s.Pool.Exec(ctx, t.statement("rows_forget")); err != nil {
			return c.report, fmt.Errorf("compare: %w", err)
		}
	}
	err := s.schema.compared(ctx, s.kind.Name(), opts.Topic, catchUp, func(live, rebuilt pgx.Tx, positions []TopicPosition) error {
		s.positions = positions
		if err := live.QueryRow(ctx, sql.Query("rebuild_snapshot")).Scan(&s.compared); err != nil {
			return err
		}
		return c.run(ctx, live, rebuilt)
	})
	if err == nil {
		err = c.note(ctx, s.Pool)
	}
	if err == nil {
		err = s.analyze(ctx)
	}
	if err != nil {
		return c.report, fmt.Errorf("compare: %w", err)
	}
	s.found = c
	return c.report, nil
}

func (c *comparison) run(ctx context.Context, live, rebuilt pgx.Tx) error {
	s := c.shadow
	if err := c.prepare(ctx, live); err != nil {
		return err
	}
	if err := c.loadFetched(ctx, live); err != nil {
		return err
	}
	if s.accounts != nil {
		if err := c.compareAccounts(ctx, live, rebuilt); err != nil {
			return err
		}
	}
	for _, t := range s.tables {
		if err := c.compare(ctx, live, rebuilt, t, func(a, b *row) error { return c.addRow(ctx, s.Pool, t, a, b) }); err != nil {
			return err
		}
	}
	c.decideAccounts()
	return c.compareMarkers(ctx, live, rebuilt)
}

// compareAccounts finds the accounts whose rows differ, or whose waiting events differ.
func (c *comparison) compareAccounts(ctx context.Context, live, rebuilt pgx.Tx) error {
	a := c.shadow.accounts
	checked, matched := c.report.Checked, c.report.Matched
	err := c.compare(ctx, live, rebuilt, a.account, func(l, r *row) error { c.addState(l, r, false); return nil })
	if err != nil {
		return err
	}
	if a.balances {
		checked, matched = c.report.Checked, c.report.Matched
	}
	if err := c.compare(ctx, live, rebuilt, a.hold, func(l, r *row) error { c.addState(l, r, true); return nil }); err != nil {
		return err
	}
	c.report.Checked, c.report.Matched = checked, matched
	var held []string // accounts where only the waiting events differ
	for id, d := range c.accounts {
		if !d.state {
			held = append(held, id)
		}
	}
	for i, tx := range []pgx.Tx{live, rebuilt} {
		if err := c.versions(ctx, tx, held, i == 0); err != nil {
			return err
		}
	}
	if !a.balances {
		return nil
	}
	return c.countHeadless(ctx, live)
}

// countHeadless adds to the counts of the report the accounts that have waiting events and no row.
// It also corrects these counts for accounts in which only the waiting events differ.
func (c *comparison) countHeadless(ctx context.Context, live pgx.Tx) error {
	var headless int64
	if err := live.QueryRow(ctx, c.shadow.accounts.hold.statement("accounts_headless")).Scan(&headless); err != nil {
		return err
	}
	c.report.Checked += headless
	c.report.Matched += headless
	for _, d := range c.accounts {
		switch {
		case d.state:
		case d.liveHold || d.live != nil:
			c.report.Matched--
		default:
			c.report.Checked++
		}
	}
	return nil
}

// The method versions reads the versions of accounts whose rows are equal.
func (c *comparison) versions(ctx context.Context, tx pgx.Tx, ids []string, live bool) error {
	if len(ids) == 0 {
		return nil
	}
	rows, _ := tx.Query(ctx, c.shadow.accounts.account.statement("accounts_versions"), ids)
	var (
		id      string
		version int64
	)
	_, err := pgx.ForEachRow(rows, []any{&id, &version}, func() error {
		v := version
		if d := c.accounts[id]; live {
			d.live = &v
		} else {
			d.rebuilt = &v
		}
		return nil
	})
	return err
}

// compareMarkers stores which markers the live inbox lacks. A pruned inbox lacks many markers of
// events that were counted. Its missing markers are therefore only stored if some rows may lack
// events. Then all of them are stored, because it is unknown which events these rows lack.
func (c *comparison) compareMarkers(ctx context.Context, live, rebuilt pgx.Tx) error {
	t := c.shadow.inbox
	if t == nil {
		return nil
	}
	rows, matched := c.report.Checked, c.report.Matched
	err := c.compare(ctx, live, rebuilt, t, func(a, b *row) error {
		switch {
		case b == nil:
			c.marked[a.id] = true
			return nil
		case c.forgets && !c.uncounted:
			return nil
		}
		c.report.Markers++
		return c.add(ctx, c.shadow.Pool, t, b, Missing)
	})
	c.report.Checked, c.report.Matched = rows, matched
	return err
}

// The method compare finds the groups of rows that differ between the live and the rebuilt table.
// In these groups, it calls add for each row that differs.
func (c *comparison) compare(ctx context.Context, live, rebuilt pgx.Tx, t *rowTable, add func(a, b *row) error) error {
	var theirs map[int64]group
	second := make(chan error, 1)
	go func() {
		var err error
		theirs, err = t.groups(ctx, rebuilt)
		second <- err
	}()
	ours, err := t.groups(ctx, live)
	if err := errors.Join(err, <-second); err != nil {
		return err
	}
	var differing []int64
	for bucket, g := range ours {
		if theirs[bucket] != g {
			differing = append(differing, bucket)
			continue
		}
		c.report.Checked += g.rows
		c.report.Matched += g.rows
	}
	for bucket := range theirs {
		if _, also := ours[bucket]; !also {
			differing = append(differing, bucket)
		}
	}
	if len(differing) == 0 {
		return nil
	}
	return merged(t.rows(ctx, live, differing), t.rows(ctx, rebuilt, differing), func(a, b *row) error {
		c.report.Checked++
		if a != nil && b != nil && a.digest == b.digest {
			c.report.Matched++
			return nil
		}
		return add(a, b)
	})
}
