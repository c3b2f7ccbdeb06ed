package readmodel

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/sql"
)

// findCorrections finds out which rows, and whether sums, may have in them what the topic
// does not give.
func (c *rowComparison) findCorrections(ctx context.Context, live pgx.Tx, forgets bool) error {
	c.given = map[Key]bool{}
	var ids []string
	for _, x := range c.opts.corrections() {
		k := Key{Text: x.AccountID, Number: x.Version}
		before, known := c.given[k]
		c.given[k] = x.Given && (before || !known)
		if !x.Given {
			c.unsure = c.unsure || forgets || x.EventID == ""
			ids = append(ids, x.EventID)
		}
	}
	if c.shadow.state != nil {
		c.unsure = len(ids) > 0
		return nil
	}
	if c.shadow.inbox == nil || c.unsure || len(ids) == 0 {
		return nil
	}
	rows, err := live.Query(ctx, sql.Query("inbox_find"), c.shadow.kind.Label, ids)
	if err != nil {
		return err
	}
	marked, err := pgx.CollectRows(rows, pgx.RowTo[string])
	c.unsure = len(marked) > 0
	return err
}

// takeRow takes in a row that differs; either may be nil, not both.
func (c *rowComparison) takeRow(ctx context.Context, n *rowNotes, live, rebuilt *row) error {
	one := live
	if one == nil {
		one = rebuilt
	}
	kind, err := c.differs(n.table, one.key, live, rebuilt)
	if err != nil {
		return err
	}
	c.report.Kinds[kind]++
	if len(c.report.Differences) < c.opts.List {
		c.report.Differences = append(c.report.Differences, RebuildDifference{ID: one.id, Kind: kind, Key: []byte(one.key)})
	}
	if err := c.shadow.state.note(n.table, kind, one.key); err != nil {
		return err
	}
	if !kind.changes() {
		return nil
	}
	note := rowNote{Kind: kind}
	if live != nil {
		note.Digest, note.Was = &live.digest, raw(live.sums)
	}
	if rebuilt != nil {
		note.Becomes = raw(rebuilt.sums)
	}
	// What the rows of a custom projection count is not known: they may lack events.
	c.uncounted = c.uncounted || c.shadow.kind.Own && kind != RebuildUnknown
	if len(n.table.Sums) > 0 && kind != RebuildUnknown {
		lacks, err := lacksEvents(n.table.Counts, note)
		if err != nil {
			return err
		}
		c.uncounted = c.uncounted || lacks
	}
	return n.add(ctx, note, one)
}

// differs tells in what way a row differs.
func (c *rowComparison) differs(t *rowTable, key string, live, rebuilt *row) (RebuildKind, error) {
	if live == nil && (!c.shadow.kind.Own || !c.unsure) {
		return RebuildMissing, nil
	}
	corrected := c.unsure
	if len(t.Sums) == 0 && !c.shadow.kind.Own {
		var k struct {
			Text   string `json:"account_id"`
			Number int64  `json:"version"`
		}
		if err := json.Unmarshal([]byte(key), &k); err != nil {
			return "", fmt.Errorf("read a key: %w", err)
		}
		given, known := c.given[Key(k)]
		corrected = known && (!given || rebuilt == nil)
	}
	switch {
	case corrected:
		return RebuildCorrected, nil
	case rebuilt != nil:
		return RebuildDifferent, nil
	case c.opts.Partial:
		return RebuildAhead, nil
	default:
		return RebuildUnknown, nil
	}
}

// lacksEvents reports whether a live sum has less events than the rebuilt one, as far as it
// counts them.
func lacksEvents(column string, note rowNote) (bool, error) {
	var was, becomes map[string]json.RawMessage
	if note.Was != nil {
		if err := json.Unmarshal(note.Was, &was); err != nil {
			return false, fmt.Errorf("read sums: %w", err)
		}
	}
	if err := json.Unmarshal(note.Becomes, &becomes); err != nil {
		return false, fmt.Errorf("read sums: %w", err)
	}
	had, counted := count(was[column])
	has, also := count(becomes[column])
	return !counted || !also || has > had, nil
}

func count(text json.RawMessage) (n int64, counted bool) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}

// rowNote is what is noted of a row that differs, beside its key.
type rowNote struct {
	Kind    RebuildKind     `json:"_kind"`
	Digest  *int64          `json:"_digest"`
	Was     json.RawMessage `json:"_was"`
	Becomes json.RawMessage `json:"_becomes"`
	Chosen  bool            `json:"_chosen"`
}

func raw(text *string) json.RawMessage {
	if text == nil {
		return nil
	}
	return json.RawMessage(*text)
}

// rowNotes writes down which rows of a table differ.
type rowNotes struct {
	pool  *pgxpool.Pool
	table *rowTable
	notes []string
}

// add notes a row.
func (n *rowNotes) add(ctx context.Context, note rowNote, r *row) error {
	text, err := json.Marshal(note)
	if err != nil {
		return err
	}
	n.notes = append(n.notes, strings.TrimSuffix(r.key, "}")+","+string(text[1:])) // one object of two
	const chunk = 5000
	return n.flush(ctx, chunk)
}

// flush writes the notes when there are at least so many.
func (n *rowNotes) flush(ctx context.Context, atLeast int) error {
	if len(n.notes) == 0 || len(n.notes) < atLeast {
		return nil
	}
	_, err := n.pool.Exec(ctx, n.table.statement("rows_note"), "["+strings.Join(n.notes, ",")+"]")
	n.notes = n.notes[:0]
	return err
}
