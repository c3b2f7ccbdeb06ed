// Package citus contains code that is only needed with Citus. It knows how tables are distributed,
// in which shard an account is, and how a claim waits for prepared transactions. It does not depend
// on the read model.
package citus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/internal/pace"
	"projector/sql"
)

// distributed lists the tables that Citus distributes by account, so that the rows of an account
// are on one node. Positions, the audit trail, the inbox, the sums and the tables of custom
// projections stay on the coordinator. All tables of this list are co-located with its first table.
var distributed = []string{"account_balance", "account_opening", "account_statement", "park_overflow", "parked_event"}

// Table is a table that Citus distributes or can distribute.
type Table struct {
	Name   string
	Shards int64 // 0 if it is not distributed
	Bytes  int64
	Rows   int64 // approximate
}

// ErrMissing means that the database has no Citus.
const ErrMissing errclass.Text = "--citus: the database has no Citus: with citus in shared_preload_libraries of every node type CREATE EXTENSION citus on each, " +
	"and name the workers by citus_add_node; or migrate without --citus"

// Querier is a pool, a connection or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Load returns how the tables are distributed. The result is empty without Citus or without tables.
func Load(ctx context.Context, db Querier) (tables []Table, err error) {
	var there bool
	if err = db.QueryRow(ctx, sql.Query("citus_there")).Scan(&there); err == nil && there {
		rows, _ := db.Query(ctx, sql.Query("citus_tables"), distributed)
		tables, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Table])
	}
	if err != nil {
		return nil, fmt.Errorf("look for Citus: %w", err)
	}
	return tables, nil
}

// Distribute lets Citus distribute the tables that are not distributed yet, all or none of them.
// Their rows are moved to the workers. Meanwhile other sessions may have to wait for these tables.
func Distribute(ctx context.Context, pool *pgxpool.Pool) (done []Table, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		tables, err := Load(ctx, tx)
		if err != nil {
			return err
		}
		if tables == nil {
			return ErrMissing
		}
		if _, err := tx.Exec(ctx, sql.Query("citus_session_distribute")); err != nil {
			return err
		}
		for _, t := range tables {
			if t.Shards > 0 {
				continue
			}
			colocateWith := distributed[0]
			if t.Name == colocateWith {
				colocateWith = "none"
			}
			if _, err := tx.Exec(ctx, sql.Query("citus_distribute"), t.Name, colocateWith); err != nil {
				return fmt.Errorf("table %s: %w", t.Name, err)
			}
			done = append(done, t)
		}
		return nil
	})
	if errors.Is(err, ErrMissing) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("distribute by Citus: %w", err)
	}
	return done, nil
}

// OnCitus is the key of the shards in a connection's custom data. The key is only set if the
// database has Citus.
const OnCitus = "projector.citus"

// BeginSession prepares a new connection. If the database has Citus, it prepares the connection for
// Citus. The parameter planned says whether the URL sets plan_cache_mode.
func BeginSession(ctx context.Context, conn *pgx.Conn, planned bool) error {
	query := "citus_session"
	if planned {
		query = "citus_there"
	}
	text := sql.Query(query)
	if _, named := conn.Config().RuntimeParams["jit"]; !named {
		text = sql.Query("session") + text
	}
	results, err := conn.PgConn().Exec(ctx, text).ReadAll()
	if err != nil {
		return err
	}
	citus := results[len(results)-1]
	if there := len(citus.Rows) > 0; !there || planned && string(citus.Rows[0][0]) != "t" {
		return nil
	}
	conn.PgConn().CustomData()[OnCitus], err = loadShards(ctx, conn)
	return err
}

// On reports whether the database had Citus when the connection was made.
func On(conn *pgx.Conn) bool { return conn.PgConn().CustomData()[OnCitus] != nil }

// settleEvery is the interval between checks for prepared transactions.
const settleEvery = 25 * time.Millisecond

// Settle waits for the end of all transactions that are prepared on a node now. The commit of such
// a transaction may already be decided, but not yet carried out on every node. The moved position
// may then be visible before the rows of the same transaction. The next owner of the partition must
// not make decisions from older rows. See docs/decisions/0038.
func Settle(ctx context.Context, pool *pgxpool.Pool) error {
	before, err := preparedOnNodes(ctx, pool)
	for err == nil && len(before) > 0 {
		if err = pace.Sleep(ctx, settleEvery); err != nil {
			break
		}
		var now map[string]bool
		now, err = preparedOnNodes(ctx, pool)
		for gid := range before {
			if !now[gid] {
				delete(before, gid)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("wait for what Citus has prepared: %w", err)
	}
	return nil
}

func preparedOnNodes(ctx context.Context, pool *pgxpool.Pool) (map[string]bool, error) {
	rows, _ := pool.Query(ctx, sql.Query("citus_prepared"))
	var (
		failed []string
		why    string
		gids   []string
		all    = map[string]bool{}
	)
	_, err := pgx.ForEachRow(rows, []any{&why, &gids}, func() error {
		if why != "" {
			failed = append(failed, why)
		}
		for _, gid := range gids {
			all[gid] = true
		}
		return nil
	})
	if err == nil && len(failed) > 0 {
		err = &pgconn.PgError{Severity: "ERROR", Code: "08006", Message: strings.Join(failed, "; ")}
	}
	return all, err
}
