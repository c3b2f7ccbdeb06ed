package balance

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/accounts"
	"projector/sql"
)

const (
	// readVersionsWithin limits the time to read all accounts. A million accounts take half a
	// second.
	readVersionsWithin = 5 * time.Second
	// awaitVersions limits how long a partition waits for the query of all versions. A rebalance
	// must not wait longer, so the result of a slower query is used later.
	awaitVersions = time.Second
	// readVersionsAgain is the pause before the next query of all versions after one has failed.
	readVersionsAgain = 5 * time.Minute
	// keepVersions is how long an unused index stays in memory.
	keepVersions = 10 * time.Second
)

// VersionReader reads the versions of all accounts for partitions that get redelivered events.
// Without this query, each account is looked up by its key, which costs PostgreSQL twenty times as
// much. All partitions of a process share one query and its index. The index only saves work. See
// docs/decisions/0019.
type VersionReader struct {
	cfg    readmodel.RunConfig
	within time.Duration // time limit of a query

	mu        sync.Mutex
	clock     uint64         // counts claims and queries of all versions
	claims    int            // running claims
	current   *versionsQuery // the running query or the last one; may be nil
	asked     time.Time      // time of the last use
	notBefore time.Time      // no query starts before this time
}

// versionsQuery is one query of the versions of all accounts, and the index from its result. A
// partition may use the index only if the query started after the partition's claim.
type versionsQuery struct {
	began uint64
	done  chan struct{}
	index *accounts.VersionIndex // valid after done is closed; nil if the query failed
}

func (f *versionsQuery) ended() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// NewVersionReader returns a VersionReader. It uses the fields Pool, IndexBytes, Stopping and Log of
// cfg. It reads nothing yet.
func NewVersionReader(cfg readmodel.RunConfig) *VersionReader {
	return &VersionReader{cfg: cfg, within: readVersionsWithin}
}

// claiming is called before a partition is claimed. No query of all versions starts until the
// method claimed is called, because this partition could not use the result of such a query.
func (r *VersionReader) claiming() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims++
}

// claimed is called after the claim. The result is a time on the reader's clock, before the start
// of all later queries.
func (r *VersionReader) claimed() uint64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims--
	r.clock++
	return r.clock
}

func (r *VersionReader) held() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current != nil
}

// since returns an index whose query started after the given moment, and the moment when this query
// started. If there is no such index, it returns nil and 0. Call since for each use, because a
// caller that stores the index keeps its memory in use.
func (r *VersionReader) since(ctx context.Context, moment uint64) (*accounts.VersionIndex, uint64) {
	if r == nil {
		return nil, 0
	}
	query := r.queryAfter(moment)
	if query == nil {
		return nil, 0
	}
	if !query.ended() {
		patience := time.NewTimer(awaitVersions)
		defer patience.Stop()
		select {
		case <-query.done:
		case <-patience.C:
			return nil, 0
		case <-ctx.Done():
			return nil, 0
		}
	}
	if query.index == nil {
		return nil, 0
	}
	return query.index, query.began
}

// queryAfter returns a versionsQuery that started after the moment. If there is none, it starts a
// query, or returns nil if no query may start now.
func (r *VersionReader) queryAfter(moment uint64) *versionsQuery {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = time.Now()
	switch c := r.current; {
	case c != nil && c.began > moment:
		return c
	case c != nil && !c.ended(), r.claims > 0, r.asked.Before(r.notBefore):
		return nil
	}
	r.clock++
	r.current = &versionsQuery{began: r.clock, done: make(chan struct{})} // releases the memory of the older index
	go r.read(r.current)
	return r.current
}

// read fills the index, and drops it when it is no longer used.
func (r *VersionReader) read(query *versionsQuery) {
	ctx, cancel := context.WithTimeout(r.cfg.Stopping, r.within)
	defer cancel()
	index, err := readVersions(ctx, r.cfg.Pool, r.cfg.IndexBytes)
	if err != nil && r.cfg.Stopping.Err() == nil {
		// This is normal if memory is too small for the versions of all accounts.
		r.cfg.Log.Info("the versions of all accounts could not be read at once: each account is looked up",
			slog.String("reason", errclass.Safe(err)), slog.Duration("next_try_in", readVersionsAgain))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(query.done)
	if err != nil {
		r.current, r.notBefore = nil, time.Now().Add(readVersionsAgain)
		return
	}
	query.index = index
	time.AfterFunc(keepVersions, func() { r.dropUnused(query) })
}

// dropUnused drops an index that was not used for keepVersions. If the last use is more recent,
// dropUnused checks again later.
func (r *VersionReader) dropUnused(query *versionsQuery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch unused := time.Since(r.asked); {
	case r.current != query:
	case unused >= keepVersions:
		r.current = nil
	default:
		time.AfterFunc(keepVersions-unused, func() { r.dropUnused(query) })
	}
}

var (
	errManyAccounts  = errors.New("more accounts than there is memory for")
	errVersionFormat = errors.New("account_balance: a column arrived in an unexpected format")
)

// readVersions reads the versions of all accounts, in one snapshot.
func readVersions(ctx context.Context, pool *pgxpool.Pool, limit int) (*accounts.VersionIndex, error) {
	index := accounts.NewVersionIndex(limit)
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sql.Query("index_session")); err != nil {
			return err
		}
		// If the query returns one row more than fits into memory, there are too many accounts.
		rows, _ := tx.Query(ctx, sql.Query("load_index"), index.Room()+1)
		_, err := pgx.ForEachRow(rows, []any{versionRow{index}}, func() error { return nil })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read all accounts: %w", err)
	}
	return index, nil
}

// versionRow adds rows of load_index.sql to the index. It avoids the slower decoding by pgx.
type versionRow struct{ index *accounts.VersionIndex }

// ScanRow implements pgx.RowScanner.
func (r versionRow) ScanRow(rows pgx.Rows) error {
	row := rows.RawValues()
	if rows.FieldDescriptions()[1].Format != pgtype.BinaryFormatCode || len(row[1]) != 8 {
		return errVersionFormat
	}
	version := int64(binary.BigEndian.Uint64(row[1])) //nolint:gosec // G115: the same bits
	if !r.index.Add(accountdb.ViewOf(row[0]), version, accountdb.ViewOf(row[2])) {
		return errManyAccounts
	}
	return nil
}
