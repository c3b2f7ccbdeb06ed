package readmodel

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"
)

// Compare compares the live tables, as they are at one moment, with the rebuilt ones, which
// catchUp has to bring exactly to the positions they are at then. What is to be changed is
// noted beside them for Swap.
func (s *RowShadow) Compare(ctx context.Context, opts CompareOptions, catchUp CatchUp) (RebuildReport, error) {
	c := &rowComparison{shadow: s, opts: opts, report: RebuildReport{Kinds: map[RebuildKind]int64{}}}
	var positions []TopicPosition
	reach := func(ctx context.Context, to []TopicPosition, ahead bool) error {
		positions = to
		return catchUp(ctx, to, ahead)
	}
	err := s.compared(ctx, s.kind.Label, opts.Topic, reach, func(live, rebuilt pgx.Tx) error { return c.run(ctx, live, rebuilt) })
	// Rows of somebody's own are replaced as a whole: they must not be rebuilt further than that.
	if err == nil && !s.kind.Own && (c.report.Kinds[RebuildUnknown] > 0 || c.foreign) {
		err = c.lookAhead(ctx, positions, catchUp)
	}
	if err == nil {
		err = s.analyze(ctx)
	}
	if err != nil {
		return c.report, fmt.Errorf("compare: %w", err)
	}
	s.positions, s.markers = positions, c.report.Markers
	return c.report, nil
}

// rowComparison compares the live tables of a projection with the rebuilt ones.
type rowComparison struct {
	shadow *RowShadow
	opts   CompareOptions
	report RebuildReport
	// unsure: sums that differ may have in them what only people have put in.
	unsure    bool
	given     map[Key]bool // corrections, and whether the topic gives them
	uncounted bool         // some sums lack events
	foreign   bool         // events are marked that were not rebuilt
}

func (c *rowComparison) run(ctx context.Context, live, rebuilt pgx.Tx) error {
	forgets := false
	if s := c.shadow.state; s != nil {
		s.differs, s.rows, s.foreign, s.plan = map[string]bool{}, map[string]RebuildKind{}, false, ""
	}
	if c.shadow.inbox != nil {
		until, err := c.shadow.kind.Remembers.PrunedUntil(ctx, live)
		if err != nil {
			return err
		}
		forgets = !until.IsZero()
	}
	if err := c.findCorrections(ctx, live, forgets); err != nil {
		return err
	}
	for _, t := range c.shadow.tables {
		n := &rowNotes{pool: c.shadow.Pool, table: t}
		if err := c.compare(ctx, live, rebuilt, t, func(a, b *row) error { return c.takeRow(ctx, n, a, b) }); err != nil {
			return err
		}
		if err := n.flush(ctx, 0); err != nil {
			return err
		}
	}
	if err := c.compareState(ctx, live, rebuilt); err != nil {
		return err
	}
	return c.compareMarkers(ctx, live, rebuilt, forgets)
}

// compareMarkers notes the markers that are missing, and those of events that were not
// rebuilt. An inbox that has forgotten markers lacks most of them: they are put in where sums
// are that lack events, for which of the events were not counted is not known then.
func (c *rowComparison) compareMarkers(ctx context.Context, live, rebuilt pgx.Tx, forgets bool) error {
	t := c.shadow.inbox
	if t == nil {
		return nil
	}
	rows, matched := c.report.Checked, c.report.Matched
	n := &rowNotes{pool: c.shadow.Pool, table: t}
	err := c.compare(ctx, live, rebuilt, t, func(a, b *row) error {
		switch {
		case b == nil:
			c.foreign = true
			return n.add(ctx, rowNote{Kind: RebuildUnknown}, a)
		case forgets && !c.uncounted:
			return nil
		}
		c.report.Markers++
		return n.add(ctx, rowNote{Kind: RebuildMissing}, b)
	})
	c.report.Checked, c.report.Matched = rows, matched
	if err != nil {
		return err
	}
	return n.flush(ctx, 0)
}

// lookAhead spares what seems unknown because consumers have not come to its events yet, or
// not again: their positions may have been set back. Sums that have such events in them
// cannot be told apart.
func (c *rowComparison) lookAhead(ctx context.Context, positions []TopicPosition, catchUp CatchUp) error {
	if err := catchUp(ctx, positions, true); err != nil {
		return err
	}
	ahead := false
	if c.foreign {
		if err := c.shadow.Pool.QueryRow(ctx, c.shadow.inbox.statement("inbox_ahead")).Scan(&ahead); err != nil {
			return err
		}
	}
	for _, t := range c.shadow.tables {
		statement := "rows_spare"
		if len(t.Sums) > 0 {
			if !ahead {
				continue
			}
			statement = "rows_spare_all"
		}
		spared, err := c.shadow.take(ctx, t.statement(statement))
		if err != nil {
			return err
		}
		c.report.become(RebuildAhead, spared)
	}
	return nil
}

// group is a group of rows, added up.
type group struct {
	rows   int64
	digest string
}

// compare finds the groups of rows in which two tables differ, and calls take for each row
// there that differs.
func (c *rowComparison) compare(ctx context.Context, live, rebuilt pgx.Tx, t *rowTable, take func(a, b *row) error) error {
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
	return merged(t.rows(ctx, live, differing), t.rows(ctx, rebuilt, differing), func(r *row) string { return r.id }, func(a, b *row) error {
		c.report.Checked++
		if a != nil && b != nil && a.digest == b.digest {
			c.report.Matched++
			return nil
		}
		return take(a, b)
	})
}

// groups adds up a table by groups of keys.
func (t *rowTable) groups(ctx context.Context, tx pgx.Tx) (map[int64]group, error) {
	rows, err := tx.Query(ctx, t.statement("rows_digest"))
	if err != nil {
		return nil, err
	}
	groups := map[int64]group{}
	var (
		bucket int64
		g      group
	)
	_, err = pgx.ForEachRow(rows, []any{&bucket, &g.rows, &g.digest}, func() error { groups[bucket] = g; return nil })
	return groups, err
}

// row is a row of a table, live or rebuilt.
type row struct {
	id     string // its key as text, by which rows are in order
	key    string // as a JSON object
	digest int64
	sums   *string // as a JSON object
}

// rows are the rows of some groups, in the order of their ids.
func (t *rowTable) rows(ctx context.Context, tx pgx.Tx, buckets []int64) iter.Seq2[*row, error] {
	return func(yield func(*row, error) bool) {
		rows, err := tx.Query(ctx, t.statement("rows_some"), buckets)
		if err != nil {
			yield(nil, err)
			return
		}
		var r row
		stopped := false
		_, err = pgx.ForEachRow(rows, []any{&r.id, &r.key, &r.digest, &r.sums}, func() error {
			one := r
			if stopped = !yield(&one, nil); stopped {
				return errStopped
			}
			return nil
		})
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}
