package readmodel

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"projector/sql"
)

// accountTables are the tables of accounts and parked events that statements are meant for:
// those of a projection of one's own, by its name, which are one set of tables with a column
// of names; or, where that is empty, those of balances. The account machine says its
// statements by their text, as they are for balances; here they become those for the others.
type accountTables string

// tablesOf are the tables of the projection of that name.
func tablesOf(name string) accountTables {
	if name == BalanceName {
		return ""
	}
	return accountTables(name)
}

// name is the projection's.
func (t accountTables) name() string {
	if t == "" {
		return BalanceName
	}
	return string(t)
}

// ownStatements has for each statement on the tables of balances the one on those of projections
// of one's own: queries/own_NAME.sql for queries/NAME.sql, with the projection's name before
// the other arguments.
var ownStatements = func() map[string]string {
	const own = "own_"
	names := map[string]string{}
	texts := sql.Names()
	for text, name := range texts {
		names[name] = text
	}
	statements := map[string]string{}
	for name, text := range names {
		if of, is := strings.CutPrefix(name, own); is && names[of] != "" {
			statements[names[of]] = text
		}
	}
	return statements
}()

// statement is what to send for a statement on the tables of balances.
func (t accountTables) statement(text string, args []any) (string, []any) {
	own, is := ownStatements[text]
	if t == "" || !is {
		return text, args
	}
	return own, append([]any{string(t)}, args...)
}

// batch has all statements of a batch meant for these tables.
func (t accountTables) batch(b *pgx.Batch) *pgx.Batch {
	for _, q := range b.QueuedQueries {
		q.SQL, q.Arguments = t.statement(q.SQL, q.Arguments)
	}
	return b
}

// from is db, for statements that are meant for these tables.
func (t accountTables) from(db querier) querier {
	if t == "" {
		return db
	}
	return tablesFrom{t, db}
}

type tablesFrom struct {
	tables accountTables
	db     querier
}

// Query implements querier.
func (f tablesFrom) Query(ctx context.Context, text string, args ...any) (pgx.Rows, error) {
	text, args = f.tables.statement(text, args)
	return f.db.Query(ctx, text, args...)
}

// QueryRow implements querier.
func (f tablesFrom) QueryRow(ctx context.Context, text string, args ...any) pgx.Row {
	text, args = f.tables.statement(text, args)
	return f.db.QueryRow(ctx, text, args...)
}

// SendBatch implements querier.
func (f tablesFrom) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return f.db.SendBatch(ctx, f.tables.batch(b))
}
