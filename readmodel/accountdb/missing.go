package accountdb

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/readmodel"
	"projector/readmodel/citus"
	"projector/sql"
)

// Missing is a range of versions that an account waits for. The range ends before the next parked
// event. If no event of the account is parked, it ends with the highest version of its events
// beyond the park limit.
type Missing struct {
	AccountID   string
	First, Last int64
}

// Versions iterates over the versions of the range.
func (m Missing) Versions() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for v := m.First; v <= m.Last; v++ {
			if !yield(v) || v == m.Last { // Last may be projection.LastVersion, and v must not overflow
				return
			}
		}
	}
}

// MissingFilter selects accounts. A zero field does not filter, but a Topic without Partitions
// selects no account.
type MissingFilter struct {
	AccountID string
	For       time.Duration // only accounts that have waited at least this long
	// Topic and Partitions select accounts by the source of the events after the gap. If Topic is
	// empty, any source matches.
	Topic      string
	Partitions []int32
	// Decisions has the events that operators have discarded. The versions of an account from the
	// first of these events on are not missing.
	Decisions *readmodel.Decisions
}

// ErrNoFetching means that missing versions cannot be fetched with this database.
const ErrNoFetching readmodel.Unfit = "missing versions cannot be fetched where Citus distributes the tables: leave out --outbox-url (OUTBOX_URL)"

// CheckFetching returns ErrNoFetching if Citus distributes the accounts.
func CheckFetching(ctx context.Context, db readmodel.Querier) error {
	tables, err := citus.Load(ctx, db)
	if err == nil && slices.ContainsFunc(tables, func(t citus.Table) bool { return t.Name == readmodel.BalanceName && t.Shards > 0 }) {
		return ErrNoFetching
	}
	return err
}

// MissingVersions streams the missing versions, oldest gap first. A version whose event is parked
// and cannot be applied is not missing, and neither is one whose event was discarded. An error ends
// the iteration.
func MissingVersions(ctx context.Context, pool *pgxpool.Pool, f MissingFilter) iter.Seq2[Missing, error] {
	return readmodel.Stream(func(fn func(Missing) error) error {
		if err := f.Decisions.Read(ctx); err != nil {
			return err
		}
		rows, _ := pool.Query(ctx, sql.Query("missing_versions"), f.For.Seconds(), f.AccountID, f.Topic, f.Partitions)
		var m Missing
		_, err := pgx.ForEachRow(rows, []any{&m.AccountID, &m.First, &m.Last}, func() error {
			if v, is := f.Decisions.FirstDiscarded(m.AccountID, m.First); is {
				m.Last = min(m.Last, v-1)
			}
			if m.Last < m.First {
				return nil
			}
			return fn(m)
		})
		if readmodel.HasCode(err, readmodel.NotSupported) {
			err = &pgconn.PgError{Severity: "ERROR", Code: readmodel.NotSupported, Message: string(ErrNoFetching)}
		}
		if err != nil {
			return fmt.Errorf("look for missing versions: %w", err)
		}
		return nil
	})
}
