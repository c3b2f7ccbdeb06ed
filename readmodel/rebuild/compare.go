package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
	// Balances means that the balances of the listed differences are read, if the projection has
	// any. Shadow.Balances returns them.
	Balances bool
}

// Compare compares a snapshot of the live tables with the rebuilt tables. The function catchUp has
// to bring the rebuilt tables exactly to the positions in the snapshot. Compare locks no rows of
// the live tables. It stores the differences in tables, for Swap.
func (s *Shadow) Compare(ctx context.Context, opts CompareOptions, catchUp CatchUp) (Report, error) {
	c := newComparison(s, opts)
	noted := slices.Clone(s.locked())
	if s.inbox != nil {
		noted = append(noted, s.inbox)
	}
	for _, t := range noted {
		if _, err := s.Pool.Exec(ctx, t.fill.Query("rows_forget")); err != nil {
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
		err = s.joinNotes(ctx)
	}
	if err == nil {
		_, err = s.lock.Exec(ctx, sql.Query("shadow_analyze"))
	}
	if err != nil {
		return c.report, fmt.Errorf("compare: %w", err)
	}
	s.found = c
	return c.report, nil
}

// joinNotes joins the notes about equal keys with different texts. Only tables of custom projections
// can have such keys.
func (s *Shadow) joinNotes(ctx context.Context) error {
	if !s.custom {
		return nil
	}
	for _, t := range s.tables {
		if _, err := s.Pool.Exec(ctx, t.fill.Query("rows_same")); err != nil {
			return err
		}
	}
	return nil
}

func (c *comparison) run(ctx context.Context, live, rebuilt pgx.Tx) error {
	if err := c.prepare(ctx, live); err != nil {
		return err
	}
	if err := c.loadFetched(ctx, live); err != nil {
		return err
	}
	for _, t := range c.shadow.tables {
		if err := c.checkDefaults(ctx, t, live, rebuilt); err != nil {
			return err
		}
	}
	err := c.decide(ctx, c.shadow.Pool, func(t *rowTable, add addDifference) error { return c.compare(ctx, live, rebuilt, t, add) })
	if err != nil {
		return err
	}
	if err := c.compareMarkers(ctx, live, rebuilt); err != nil {
		return err
	}
	return c.readBalances(ctx, live, rebuilt)
}

// compareMarkers notes the markers that the live inbox lacks. In two cases it notes them only if
// some rows may lack events. It then notes all of them, because it is unknown which events the rows
// lack. In the first case, the inbox was pruned, so it lacks many markers of events that were
// counted. In the second case, rows are left alone. These rows may lack the events, and with a
// marker the events would never be counted.
func (c *comparison) compareMarkers(ctx context.Context, live, rebuilt pgx.Tx) error {
	t := c.shadow.inbox
	if t == nil {
		return nil
	}
	return c.compare(ctx, live, rebuilt, t, func(a, b *row) error {
		switch {
		case b == nil:
			var marker struct {
				EventID string `json:"message_id"`
			}
			err := json.Unmarshal([]byte(a.key), &marker)
			c.marked[marker.EventID] = true
			return err
		case (c.forgets || c.left) && !c.uncounted:
			return nil
		}
		c.report.Markers++
		return c.add(ctx, c.shadow.Pool, t, b, Missing)
	})
}

// compare finds the groups of rows that differ between the live and the rebuilt table. In these
// groups, it calls add for each row that differs.
func (c *comparison) compare(ctx context.Context, live, rebuilt pgx.Tx, t *rowTable, add addDifference) error {
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
	checked, matched := &c.report.Checked, &c.report.Matched
	if t.uncounted {
		checked, matched = new(int64), new(int64)
	}
	var differing []int64
	for bucket, g := range ours {
		if theirs[bucket] != g {
			differing = append(differing, bucket)
			continue
		}
		*checked += g.rows
		*matched += g.rows
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
		*checked++
		if differ(a, b) {
			return add(a, b)
		}
		*matched++
		return nil
	})
}
