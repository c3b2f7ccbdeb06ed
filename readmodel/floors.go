package readmodel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"
	"weak"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/sql"
)

// readFloorsWithin is how long reading all balance rows may take: a million take one second.
const readFloorsWithin = 5 * time.Second

// FloorReader reads the whole of account_balance for partitions that are delivered what
// they have had before: looking up each account by its key costs PostgreSQL thirty
// times as much. All partitions of a process share one reading. It only saves work:
// what cannot be read in time and in memory is looked up as before. See
// docs/decisions/0019.
type FloorReader struct {
	pool  *pgxpool.Pool
	limit int // bytes

	mu     sync.Mutex
	clock  uint64                      // counts claims and readings
	latest weak.Pointer[floorsReading] // kept by those who use it
}

// floorsReading is one reading of all accounts.
type floorsReading struct {
	began  uint64
	floors *projection.Floors // nil when they could not be had
	done   chan struct{}      // closed when they are set
	cancel context.CancelFunc
	waits  int
}

// NewFloorReader prepares the reading of at most limit bytes of floors; 0: none is read.
func NewFloorReader(pool *pgxpool.Pool, limit int) *FloorReader {
	return &FloorReader{pool: pool, limit: limit}
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

// since waits for a reading begun after the moment. Its floors are nil when they are not
// to be had.
func (r *FloorReader) since(ctx context.Context, moment uint64) *floorsReading {
	reading := r.join(moment)
	defer r.leave(reading)
	select {
	case <-reading.done:
		return reading
	case <-ctx.Done():
		return &floorsReading{}
	}
}

// join begins a reading unless there is one that will do.
func (r *FloorReader) join(moment uint64) *floorsReading {
	r.mu.Lock()
	defer r.mu.Unlock()
	reading := r.latest.Value()
	if reading == nil || reading.began <= moment {
		ctx, cancel := context.WithTimeout(context.Background(), readFloorsWithin)
		r.clock++
		reading = &floorsReading{began: r.clock, done: make(chan struct{}), cancel: cancel}
		r.latest = weak.Make(reading)
		go func() {
			defer close(reading.done)
			if floors, err := readFloors(ctx, r.pool, r.limit); err == nil {
				reading.floors = floors
			}
		}()
	}
	reading.waits++
	return reading
}

// leave ends a reading that nobody waits for any more.
func (r *FloorReader) leave(reading *floorsReading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if reading.waits--; reading.waits == 0 {
		reading.cancel()
	}
}

var errTooManyAccounts = errors.New("more accounts than there is memory for")

func readFloors(ctx context.Context, db querier, limit int) (*projection.Floors, error) {
	rows, err := db.Query(ctx, sql.Query("load_floors"))
	if err != nil {
		return nil, fmt.Errorf("read all accounts: %w", err)
	}
	floors := projection.NewFloors(limit)
	row := floorRow{floors}
	if _, err = pgx.ForEachRow(rows, []any{row}, func() error { return nil }); err != nil {
		return nil, fmt.Errorf("read all accounts: %w", err)
	}
	return floors, nil
}

// floorRow takes rows of load_floors.sql in as they are on the wire.
type floorRow struct{ floors *projection.Floors }

// ScanRow implements pgx.RowScanner.
func (r floorRow) ScanRow(rows pgx.Rows) error {
	row := rows.RawValues()
	if len(row[1]) != 8 {
		return errors.New("account_balance.version: arrived with an unexpected length")
	}
	version := int64(binary.BigEndian.Uint64(row[1])) //nolint:gosec // G115: the same bits
	if !r.floors.Add(viewOf(row[0]), version, viewOf(row[2])) {
		return errTooManyAccounts
	}
	return nil
}

// redelivery notices that a partition is delivered what it has had before, and that
// this is over.
type redelivery struct {
	in      bool
	against int  // what speaks against in, without anything for it in between
	ignored bool // nothing is to be had that would help
}

const (
	// redeliveredAfter is how many accounts are looked up for duplicates alone before
	// all are read at once: eight partitions have spent by then what that costs.
	redeliveredAfter = 1024
	// freshAfter is how many records that are no duplicates end it.
	freshAfter = 8192
)

// judged takes note of judged records and of the accounts that were looked up for them,
// and reports whether in has changed.
func (r *redelivery) judged(records, duplicates, lookedUp int) (changed bool) {
	mostly := 10*duplicates >= 9*records
	switch {
	case r.ignored:
		return false
	case mostly == r.in:
		r.against = 0
		return false
	case r.in:
		r.against += records
		changed = r.against >= freshAfter
	default:
		r.against += lookedUp
		changed = r.against >= redeliveredAfter
	}
	if changed {
		*r = redelivery{in: !r.in}
	}
	return changed
}
