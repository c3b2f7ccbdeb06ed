package own

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection/file"
	"projector/readmodel"
)

// CheckForRunner does the same as Check, for the role that will run the projection. If this login
// cannot become that role, the statements are only parsed, which needs no grants on tables. Missing
// grants are then derived from their text.
func CheckForRunner(ctx context.Context, pool *pgxpool.Pool, p file.Projection) error {
	role, err := readmodel.One[string](ctx, pool, "ask for the role of the projection's SQL", "custom_runner")
	if err != nil {
		return err
	}
	if role == "" {
		return Check(ctx, pool, p)
	}
	unparsed := parsed(ctx, pool, &p)
	if unparsed != nil && !readmodel.HasCode(unparsed, readmodel.InsufficientPrivilege) {
		return unparsed
	}
	for i := range p.Statements {
		one := p
		one.Statements = p.Statements[i : i+1]
		line := p.Statements[i].LineAt(0)
		for _, use := range one.Uses() {
			if slices.Contains(file.OwnTables, strings.ToLower(use.Table)) {
				return &StatementError{Projection: p.Name, Line: line, Err: &TouchedError{Projection: p.Name, Table: use.Table}}
			}
		}
		lacking, err := grants(ctx, pool, &one, role)
		if err != nil {
			return err
		}
		if len(lacking) == 0 {
			continue
		}
		all, err := grants(ctx, pool, &p, role)
		if err != nil {
			return err
		}
		refused := readmodel.Forbidden(role + ", which runs the statement, lacks a grant")
		return &StatementError{Projection: p.Name, Line: line, Err: refused, Grants: all}
	}
	return unparsed
}

// parsed lets PostgreSQL parse the statements and look up their tables and columns. It runs no
// statement.
func parsed(ctx context.Context, pool *pgxpool.Pool, p *file.Projection) error {
	return pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		for _, s := range p.Statements {
			_, err := tx.Conn().PgConn().Prepare(ctx, "", s.SQL, nil)
			if hidden, is := errors.AsType[*pgconn.PgError](err); is && hidden.Code == readmodel.InsufficientPrivilege {
				hidden.Hint = "the role that runs it may, this login may not: check as a member of projector_runtime or projector_approver"
			}
			if err != nil {
				return &StatementError{Projection: p.Name, Line: s.LineAt(position(err, s.SQL, "")), Err: err}
			}
		}
		return nil
	})
}
