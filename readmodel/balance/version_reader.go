package balance

import (
	"cmp"
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
	"projector/readmodel/accountdb"
	"projector/readmodel/accounts"
	"projector/sql"
)

const (
	// readVersionsWithin is how long reading all accounts may take: a million take half
	// a second.
	readVersionsWithin = 5 * time.Second
	// awaitVersions is how long a partition waits for a reading. What takes longer
	// it picks up later; a rebalance must not wait.
	awaitVersions = time.Second
	// readVersionsAgain is how long there is no other try after one that failed.
	readVersionsAgain = 5 * time.Minute
	// keepVersions is how long an index is stored that is not used.
	keepVersions = 10 * time.Second
)

// VersionReader reads the whole of account_balance for partitions that are delivered what
// they have had before: to look up each account by its key costs PostgreSQL twenty
// times as much. All partitions of a process share one reading, and there is never more
// than one. It only saves work: while there is no index, accounts are looked up. See
// docs/decisions/0019.
type VersionReader struct {
	cfg VersionReaderConfig

	mu        sync.Mutex
	clock     uint64           // counts claims and readings
	claims    int              // under way
	current   *versionsReading // under way, or what it has read; nil: none
	asked     time.Time        // when it was used last
	notBefore time.Time        // no reading begins
}

// versionsReading is a reading of all accounts. What began after a partition's claim is
// good for that partition.
type versionsReading struct {
	began uint64
	done  chan struct{}
	index *accounts.VersionIndex // when done; nil when it could not be had
}

// ended reports that the reading is done.
func (f *versionsReading) ended() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// VersionReaderConfig is what a VersionReader needs.
type VersionReaderConfig struct {
	Pool  *pgxpool.Pool
	Bytes int // that the index may take
	// Ends, when done, ends a reading: no exit waits for one. nil: never.
	Ends   context.Context
	Within time.Duration // how long a reading may take; 0: 5 s
	Log    *slog.Logger  // nil: none
}

// NewVersionReader prepares the reading of versions.
func NewVersionReader(cfg VersionReaderConfig) *VersionReader {
	if cfg.Ends == nil {
		cfg.Ends = context.Background()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Within = cmp.Or(cfg.Within, readVersionsWithin)
	return &VersionReader{cfg: cfg}
}

// claiming notes that a partition is being claimed: no reading begins, because it would be of
// no use to that partition.
func (r *VersionReader) claiming() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims++
}

// claimed ends claiming, and is a moment that lies before all readings begun later.
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

// held reports that an index takes up memory.
func (r *VersionReader) held() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current != nil
}

// since returns an index whose reading began after the moment, nil while there is none.
// Ask again for each use: who keeps it keeps its memory.
func (r *VersionReader) since(ctx context.Context, moment uint64) *accounts.VersionIndex {
	if r == nil {
		return nil
	}
	reading := r.reading(moment)
	if reading == nil {
		return nil
	}
	if !reading.ended() {
		patience := time.NewTimer(awaitVersions)
		defer patience.Stop()
		select {
		case <-reading.done:
		case <-patience.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	return reading.index
}

// reading returns a reading begun after the moment, and begins one where that is due.
func (r *VersionReader) reading(moment uint64) *versionsReading {
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
	r.current = &versionsReading{began: r.clock, done: make(chan struct{})} // the older one's memory is free
	go r.read(r.current)
	return r.current
}

// read fills an index, and stores it for as long as it is used.
func (r *VersionReader) read(reading *versionsReading) {
	ctx, cancel := context.WithTimeout(r.cfg.Ends, r.cfg.Within)
	defer cancel()
	index, err := readVersions(ctx, r.cfg.Pool, r.cfg.Bytes)
	if err != nil && r.cfg.Ends.Err() == nil {
		// This is normal when there are more accounts than memory for their versions.
		r.cfg.Log.Info("the versions of all accounts could not be read at once: each account is looked up",
			slog.String("reason", errclass.Safe(err)), slog.Duration("next_try_in", readVersionsAgain))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(reading.done)
	if err != nil {
		r.current, r.notBefore = nil, time.Now().Add(readVersionsAgain)
		return
	}
	reading.index = index
	time.AfterFunc(keepVersions, func() { r.dropUnused(reading) })
}

// dropUnused drops an index that is not used, or checks again later.
func (r *VersionReader) dropUnused(reading *versionsReading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch unused := time.Since(r.asked); {
	case r.current != reading:
	case unused >= keepVersions:
		r.current = nil
	default:
		time.AfterFunc(keepVersions-unused, func() { r.dropUnused(reading) })
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
		// One row more than there is memory for shows that there are too many.
		rows, err := tx.Query(ctx, sql.Query("load_index"), index.Room()+1)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{versionRow{index}}, func() error { return nil })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read all accounts: %w", err)
	}
	return index, nil
}

// versionRow takes rows of load_index.sql in as they are on the wire.
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
