package readmodel

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
	"projector/projection"
	"projector/sql"
)

const (
	// readFloorsWithin is how long reading all accounts may take: a million take half
	// a second.
	readFloorsWithin = 5 * time.Second
	// awaitFloors is how long a partition stands still for a reading. What takes longer
	// it picks up later; a rebalance must not wait.
	awaitFloors = time.Second
	// readFloorsAgain is how long there is no other try after one that failed.
	readFloorsAgain = 5 * time.Minute
	// keepFloors is how long floors are kept that nobody asks for.
	keepFloors = 10 * time.Second
)

// FloorReader reads the whole of account_balance for partitions that are delivered what
// they have had before: to look up each account by its key costs PostgreSQL twenty
// times as much. All partitions of a process share one reading, and there is never more
// than one. It only saves work: while there are no floors, accounts are looked up. See
// docs/decisions/0019.
type FloorReader struct {
	cfg FloorConfig

	mu        sync.Mutex
	clock     uint64         // counts claims and readings
	current   *floorsReading // under way, or what it has read; nil: none
	asked     time.Time      // when somebody asked for floors last
	notBefore time.Time      // no reading begins
}

// floorsReading is a reading of all accounts. What began after a partition's claim is
// good for that partition.
type floorsReading struct {
	began  uint64
	done   chan struct{}
	floors *projection.Floors // when done; nil when they could not be had
}

// ended reports that the reading is done.
func (f *floorsReading) ended() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// FloorConfig is what a FloorReader needs.
type FloorConfig struct {
	Pool  *pgxpool.Pool
	Bytes int // that floors may take
	// Ends, when done, ends a reading: no exit waits for one. nil: never.
	Ends context.Context
	Log  *slog.Logger // nil: none
}

// NewFloorReader prepares the reading of floors.
func NewFloorReader(cfg FloorConfig) *FloorReader {
	if cfg.Ends == nil {
		cfg.Ends = context.Background()
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &FloorReader{cfg: cfg}
}

// now is a moment that lies before all readings begun later.
func (r *FloorReader) now() uint64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock++
	return r.clock
}

// held reports that floors take up memory.
func (r *FloorReader) held() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.current != nil
}

// since answers floors whose reading began after the moment, nil while there are none.
// Ask again for each use: who keeps them keeps their memory.
func (r *FloorReader) since(ctx context.Context, moment uint64) *projection.Floors {
	if r == nil {
		return nil
	}
	reading := r.reading(moment)
	if reading == nil {
		return nil
	}
	if !reading.ended() {
		patience := time.NewTimer(awaitFloors)
		defer patience.Stop()
		select {
		case <-reading.done:
		case <-patience.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	return reading.floors
}

// reading answers a reading begun after the moment, and begins one where that is due.
func (r *FloorReader) reading(moment uint64) *floorsReading {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = time.Now()
	switch c := r.current; {
	case c != nil && c.began > moment:
		return c
	case c != nil && !c.ended(), r.asked.Before(r.notBefore):
		return nil
	}
	r.clock++
	r.current = &floorsReading{began: r.clock, done: make(chan struct{})} // the older one's memory is free
	go r.read(r.current)
	return r.current
}

// read reads, and keeps what it has read as long as it is asked for.
func (r *FloorReader) read(reading *floorsReading) {
	ctx, cancel := context.WithTimeout(r.cfg.Ends, readFloorsWithin)
	defer cancel()
	floors, err := readFloors(ctx, r.cfg.Pool, r.cfg.Bytes)
	if err != nil && r.cfg.Ends.Err() == nil {
		// It is no failure: where there are more accounts than memory, this is how it goes on.
		r.cfg.Log.Info("the versions of all accounts could not be read at once: each account is looked up",
			slog.String("reason", errclass.Safe(err)), slog.Duration("next_try_in", readFloorsAgain))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(reading.done)
	if err != nil {
		r.current, r.notBefore = nil, time.Now().Add(readFloorsAgain)
		return
	}
	reading.floors = floors
	time.AfterFunc(keepFloors, func() { r.dropUnused(reading) })
}

// dropUnused gives up floors that nobody has asked for, or looks again later.
func (r *FloorReader) dropUnused(reading *floorsReading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch unused := time.Since(r.asked); {
	case r.current != reading:
	case unused >= keepFloors:
		r.current = nil
	default:
		time.AfterFunc(keepFloors-unused, func() { r.dropUnused(reading) })
	}
}

var (
	errManyAccounts = errors.New("more accounts than there is memory for")
	errFloorFormat  = errors.New("account_balance: a column arrived in an unexpected format")
)

// readFloors reads the floors of all accounts, in one snapshot.
func readFloors(ctx context.Context, pool *pgxpool.Pool, limit int) (*projection.Floors, error) {
	floors := projection.NewFloors(limit)
	err := pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sql.Query("floors_session")); err != nil {
			return err
		}
		// One row more than there is room for tells that they are too many.
		rows, err := tx.Query(ctx, sql.Query("load_floors"), floors.Room()+1)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{floorRow{floors}}, func() error { return nil })
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read all accounts: %w", err)
	}
	return floors, nil
}

// floorRow takes rows of load_floors.sql in as they are on the wire.
type floorRow struct{ floors *projection.Floors }

// ScanRow implements pgx.RowScanner.
func (r floorRow) ScanRow(rows pgx.Rows) error {
	row := rows.RawValues()
	if rows.FieldDescriptions()[1].Format != pgtype.BinaryFormatCode || len(row[1]) != 8 {
		return errFloorFormat
	}
	version := int64(binary.BigEndian.Uint64(row[1])) //nolint:gosec // G115: the same bits
	if !r.floors.Add(viewOf(row[0]), version, viewOf(row[2])) {
		return errManyAccounts
	}
	return nil
}

// redelivery notices that a partition is delivered what it has had before, and that
// this is over.
type redelivery struct {
	in      bool
	against int // what speaks against in, without anything for it in between
}

const (
	// redeliveredAfter is how many accounts are looked up for duplicates alone before
	// all are read at once: eight partitions have spent an eighth by then of what it costs
	// to read a million.
	redeliveredAfter = 512
	// freshAfter is how many records that are mostly no duplicates end it.
	freshAfter = 8192
)

// judged takes note of judged records and of the accounts that were looked up for them.
func (r *redelivery) judged(records, duplicates, lookedUp int) {
	if records == 0 {
		return
	}
	over := freshAfter
	switch mostly := 10*duplicates >= 9*records; {
	case mostly == r.in:
		r.against = 0
		return
	case r.in:
		r.against += records
	default:
		r.against += lookedUp
		over = redeliveredAfter
	}
	if r.against >= over {
		*r = redelivery{in: !r.in}
	}
}
