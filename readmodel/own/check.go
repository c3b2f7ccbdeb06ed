package own

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection/file"
	"projector/readmodel"
	"projector/sql"
)

// Check lets PostgreSQL plan the statements under the projection's role, and runs none. It returns
// a *StatementError if a statement cannot be planned, for example because of a syntax error or a
// missing table or grant. It also returns one if a plan writes to one of the projector's own
// tables. A statement without a plan, such as TRUNCATE, is only parsed. Errors that only occur when
// a statement runs are not found.
func Check(ctx context.Context, pool *pgxpool.Pool, p file.Projection) error {
	err := plan(ctx, pool, &p)
	var refused *StatementError
	if !errors.As(err, &refused) || !readmodel.HasCode(err, readmodel.InsufficientPrivilege) {
		return err
	}
	for _, use := range p.Uses() {
		if slices.Contains(file.OwnTables, strings.ToLower(use.Table)) {
			refused.Err = &TouchedError{Projection: p.Name, Table: use.Table}
			return err
		}
	}
	missing, asked := grants(ctx, pool, &p, "")
	if asked != nil {
		return errors.Join(err, asked)
	}
	refused.Grants = missing
	return err
}

// plan lets PostgreSQL plan the statements.
func plan(ctx context.Context, pool *pgxpool.Pool, p *file.Projection) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }() // planning may call functions with deferred triggers
	model, err := readmodel.One[string](ctx, tx, "look for the schema of the read model", "custom_model")
	if err != nil {
		return err
	}
	for _, s := range p.Statements {
		first, err := explain(ctx, tx, p.Name, model, s.SQL)
		if err != nil {
			return &StatementError{Projection: p.Name, Line: s.LineAt(position(err, s.SQL, first)), Err: err}
		}
	}
	return nil
}

// ready does the same as Check, for an instance that runs the projection. It also returns an error
// if another file with this name was accepted since the instance started; see readmodel.CheckFile.
func ready(ctx context.Context, pool *pgxpool.Pool, p file.Projection) error {
	if err := readmodel.CheckFile(ctx, pool, &p); err != nil {
		return err
	}
	return Check(ctx, pool, p)
}

// explainFirst is put before a statement that is checked.
const explainFirst = "EXPLAIN (VERBOSE, FORMAT JSON) "

// explainable lists the first words of statements that have a plan.
var explainable = []string{"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "VALUES", "TABLE"}

// hasPlan reports whether a statement starts with one of the words in explainable. A comment or an
// operator may follow the word without a space, as in SELECT*FROM.
func hasPlan(statement string) bool {
	words := strings.FieldsFunc(statement, func(r rune) bool { return !unicode.IsLetter(r) })
	return len(words) > 0 && slices.Contains(explainable, strings.ToUpper(words[0]))
}

// explain lets PostgreSQL plan a statement and checks which tables it would write. In another schema
// than the read model's, a table may have the name of one of the projector's own tables. A statement
// without a plan is only parsed. The result first is the text that was put before the statement.
func explain(ctx context.Context, tx pgx.Tx, name, model, statement string) (first string, err error) {
	if !hasPlan(statement) {
		if _, err := tx.Exec(ctx, sql.Query("custom_become")); err != nil {
			return "", fmt.Errorf("become the role of the projection's SQL: %w", err)
		}
		if _, err := tx.Conn().PgConn().Prepare(ctx, "", statement, nil); err != nil {
			return "", err
		}
		_, err := tx.Exec(ctx, "RESET ROLE")
		return "", err
	}
	var text string
	if err := tx.QueryRow(ctx, sql.Query("custom_run"), explainFirst+statement, "plan").Scan(&text); err != nil {
		return explainFirst, err
	}
	table, err := writtenTable(text, func(schema, table string) bool {
		return schema == model && slices.Contains(file.OwnTables, table)
	})
	if err == nil && table != "" {
		err = &TouchedError{Projection: name, Table: table}
	}
	return explainFirst, err
}

// writtenTable returns the first table that a plan writes and for which refused returns true, or an
// empty text. The plan is the output of explainFirst.
func writtenTable(plan string, refused func(schema, table string) bool) (string, error) {
	var plans []struct{ Plan node }
	if err := json.Unmarshal([]byte(plan), &plans); err != nil {
		return "", fmt.Errorf("read the plan: %w", err)
	}
	for i := range plans {
		if table := plans[i].Plan.written(refused); table != "" {
			return table, nil
		}
	}
	return "", nil
}

// node is a node of a query plan, with the table that it reads or writes.
type node struct {
	Node     string `json:"Node Type"`
	Schema   string
	Relation string `json:"Relation Name"`
	Plans    []node
}

func (n *node) written(refused func(schema, table string) bool) string {
	if n.Node == "ModifyTable" && refused(n.Schema, n.Relation) {
		return n.Relation
	}
	for i := range n.Plans {
		if table := n.Plans[i].written(refused); table != "" {
			return table
		}
	}
	return ""
}

// position returns where in a statement the error is, or 0. The parameter first is the text that
// was put before the statement when a function of the database planned it.
func position(err error, statement, first string) int {
	var refused *pgconn.PgError
	switch {
	case !errors.As(err, &refused):
		return 0
	case refused.InternalQuery == first+statement:
		return max(int(refused.InternalPosition)-len(first), 0)
	default:
		return int(refused.Position)
	}
}
