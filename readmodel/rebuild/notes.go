package rebuild

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/readmodel"
	"projector/sql"
)

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// noteRows is the largest number of notes in one insert.
const noteRows = 5000

// add adds a note about a row, with the kind of its difference. A note becomes a row in a table of
// differences. If db is nil, the note is written later, by the method note.
func (c *comparison) add(ctx context.Context, db execer, t *rowTable, r *row, kind Kind) error {
	c.notes[t] = append(c.notes[t], strings.TrimSuffix(r.key, "}")+`,"_kind":`+strconv.Quote(string(kind))+"}")
	if len(c.notes[t]) < noteRows || db == nil {
		return nil
	}
	return c.flush(ctx, db, t)
}

func (c *comparison) flush(ctx context.Context, db execer, t *rowTable) error {
	for some := range slices.Chunk(c.notes[t], noteRows) {
		if _, err := db.Exec(ctx, t.fill.Query("rows_note"), "["+strings.Join(some, ",")+"]"); err != nil {
			return err
		}
	}
	c.notes[t] = c.notes[t][:0]
	return nil
}

// note adds a note for each account in c.accounts, and writes all notes that are not written yet.
func (c *comparison) note(ctx context.Context, db execer) error {
	if a := c.shadow.accounts; a != nil {
		for id, d := range c.accounts {
			key, err := json.Marshal(map[string]string{"account_id": id})
			if err != nil {
				return err
			}
			if err := c.add(ctx, db, a.account, &row{key: string(key)}, d.kind); err != nil {
				return err
			}
		}
	}
	for t := range c.notes {
		if err := c.flush(ctx, db, t); err != nil {
			return err
		}
	}
	return nil
}

// Concerned counts the accounts that would be changed. In tables without accounts, it counts the
// rows. --max-differences limits this number.
func (s *Shadow) Concerned(ctx context.Context, removing bool) (n int64, err error) {
	return s.found.count(ctx, s.Pool, removing)
}

func (c *comparison) count(ctx context.Context, db readmodel.Querier, removing bool) (n int64, err error) {
	for _, t := range c.shadow.tables {
		rows, _ := db.Query(ctx, t.fill.Query("rows_count"), removing)
		some, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int64])
		if err != nil {
			return 0, fmt.Errorf("compare: %w", err)
		}
		n += some
	}
	return n + c.concerned(removing), nil
}

// Digest returns a hash of what a swap would write.
func (s *Shadow) Digest(ctx context.Context, removing bool) (string, error) {
	tables := s.tables
	if a := s.accounts; a != nil && a.balances {
		tables = []*rowTable{a.account}
	}
	all := ""
	err := pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sql.Query("plan_session")); err != nil {
			return err
		}
		for _, t := range tables {
			var one string
			if err := tx.QueryRow(ctx, t.fill.Query("rows_plan"), removing).Scan(&one); err != nil {
				return err
			}
			all += one
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read what differs: %w", err)
	}
	if s.accounts != nil {
		all += s.found.plan(removing)
	}
	return all, nil
}

// OfAccounts reports whether Concerned counts accounts and not rows.
func (s *Shadow) OfAccounts() bool {
	return !slices.ContainsFunc(s.tables, func(t *rowTable) bool { return !t.ofAccounts })
}

// Moved corrects the report for accounts or rows that the swap did not change, although the
// comparison planned to change them. For example, operators have changed these accounts since the
// rebuild began.
func (s *Shadow) Moved(r *Report) {
	for i := range r.Differences {
		d := &r.Differences[i]
		if kind := s.moved[d.ID]; kind != "" {
			r.Kinds[d.Kind]--
			r.Kinds[kind]++
			d.Kind = kind
		}
	}
}

// sinceRepaired reads the accounts that operators have changed since the rebuild began.
func (c *comparison) sinceRepaired(ctx context.Context, db readmodel.Querier) error {
	ids, err := readmodel.Texts(ctx, db, "load actions", "rebuild_repaired", c.shadow.kind.Name(), c.shadow.begun)
	if a := c.shadow.accounts; err == nil && a != nil && a.balances {
		var opened []string
		opened, err = readmodel.Texts(ctx, db, "load openings", "rebuild_opened_since")
		ids = append(ids, opened...)
	}
	c.repaired = map[string]bool{}
	for _, id := range ids {
		c.repaired[id] = true
	}
	return err
}
