package rebuild

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/readmodel"
	"projector/sql"
)

// shadowSchema is where a rebuild has its tables.
const shadowSchema = "projector_rebuild"

// ErrRebuilding says that another rebuild is under way.
var ErrRebuilding = errors.New("another rebuild of this database is under way")

// schema is the schema of a rebuild: shadow tables like the live ones, to be filled from the
// first record and compared.
type schema struct {
	live *pgxpool.Pool
	lock *pgxpool.Conn
	// Pool sees the tables of the rebuild by the names of the live ones: what is opened on
	// it writes there.
	Pool *pgxpool.Pool
}

// openSchema makes the schema, which needs the right to call the function that does: empty
// copies of the live tables copied and of the positions, and tables for what differs of those
// in noted. What an earlier rebuild has left is dropped. ErrRebuilding means that one is in use.
func openSchema(ctx context.Context, live *pgxpool.Pool, copied, noted []string, others ...string) (*schema, error) {
	lock, err := live.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("prepare the rebuild: %w", err)
	}
	b := &schema{live: live, lock: lock}
	var free bool
	if err := lock.QueryRow(ctx, sql.Query("shadow_lock")).Scan(&free); err != nil {
		lock.Release()
		return nil, fmt.Errorf("prepare the rebuild: %w", err)
	}
	if !free {
		lock.Release()
		return nil, ErrRebuilding
	}
	copied = append([]string{"projector_position", "projector_source"}, copied...)
	if err = b.tables(ctx, copied, noted); err == nil {
		b.Pool, err = shadowPool(ctx, live, others...)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the rebuild: %w", err), b.Close(ctx))
	}
	return b, nil
}

// shadowPool sees the tables of the rebuild, then those of the other schemas.
func shadowPool(ctx context.Context, live *pgxpool.Pool, others ...string) (*pgxpool.Pool, error) {
	cfg := live.Config()
	cfg.ConnConfig.RuntimeParams["search_path"] = strings.Join(append([]string{shadowSchema}, others...), ", ")
	cfg.MinConns, cfg.MinIdleConns = 0, 0
	return pgxpool.NewWithConfig(ctx, cfg)
}

// tables makes the tables of the rebuild in the place of all that are there.
func (b *schema) tables(ctx context.Context, copied, noted []string) error {
	_, err := b.lock.Exec(ctx, sql.Query("shadow_tables"), copied, noted)
	return err
}

// analyze has PostgreSQL count what there is now.
func (b *schema) analyze(ctx context.Context) error {
	_, err := b.lock.Exec(ctx, sql.Query("shadow_analyze"))
	return err
}

// digest joins the hashes that statements answer, each of what would be written.
func (b *schema) digest(ctx context.Context, statements []string, removing bool) (all string, err error) {
	err = pgx.BeginFunc(ctx, b.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sql.Query("plan_session")); err != nil {
			return err
		}
		for _, statement := range statements {
			var one string
			if err := tx.QueryRow(ctx, statement, removing).Scan(&one); err != nil {
				return err
			}
			all += one
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read what differs: %w", err)
	}
	return all, nil
}

// Close drops the schema.
func (b *schema) Close(ctx context.Context) error {
	if b.Pool != nil {
		b.Pool.Close()
	}
	err := b.tables(ctx, []string{}, []string{})
	if _, unlockErr := b.lock.Exec(ctx, sql.Query("shadow_unlock")); unlockErr != nil {
		_ = b.lock.Conn().Close(ctx) // the lock goes with the session
	}
	b.lock.Release()
	if err != nil {
		return fmt.Errorf("drop the tables of the rebuild: %w", err)
	}
	return nil
}

// loadPositions reads up to where the projection is rebuilt, by partition.
func (b *schema) loadPositions(ctx context.Context, db readmodel.Querier, topic string) (map[int32]int64, error) {
	rows, err := db.Query(ctx, sql.Query("shadow_positions"), topic)
	if err != nil {
		return nil, err
	}
	at := map[int32]int64{}
	var (
		partition int32
		next      int64
	)
	_, err = pgx.ForEachRow(rows, []any{&partition, &next}, func() error { at[partition] = next; return nil })
	return at, err
}

// compared runs fn with a snapshot of the live tables and one of the rebuilt ones, which
// catchUp has to bring exactly to the positions of the first.
func (b *schema) compared(ctx context.Context, projection, topic string, catchUp CatchUp, fn func(live, rebuilt pgx.Tx, positions []TopicPosition) error) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return pgx.BeginTxFunc(ctx, b.live, options, func(live pgx.Tx) error {
		if _, err := live.Exec(ctx, sql.Query("rebuild_session")); err != nil {
			return err
		}
		positions, err := LoadTopicPositions(ctx, live, projection, topic)
		if err != nil {
			return err
		}
		if err := catchUp(ctx, positions); err != nil {
			return err
		}
		return pgx.BeginTxFunc(ctx, b.Pool, options, func(rebuilt pgx.Tx) error {
			if _, err := rebuilt.Exec(ctx, sql.Query("rebuild_session")); err != nil {
				return err
			}
			if err := b.reached(ctx, rebuilt, topic, positions); err != nil {
				return err
			}
			return fn(live, rebuilt, positions)
		})
	})
}

// reached fails unless the rebuilt tables are exactly at the positions.
func (b *schema) reached(ctx context.Context, db readmodel.Querier, topic string, positions []TopicPosition) error {
	at, err := b.loadPositions(ctx, db, topic)
	if err != nil {
		return err
	}
	for _, p := range positions {
		if next, known := at[p.Partition]; !known || next != p.Next {
			return &ShadowLostError{p.Partition}
		}
	}
	return nil
}

// ShadowLostError says that the tables of a rebuild are not where they were brought to.
type ShadowLostError struct{ Partition int32 }

// Error implements error.
func (e *ShadowLostError) Error() string {
	return fmt.Sprintf("the tables of the rebuild are not where they were brought to in partition %d: "+
		"did PostgreSQL crash, or is somebody else using them? Run it again", e.Partition)
}

// SafeText implements errclass.Describer.
func (e *ShadowLostError) SafeText() string { return e.Error() }

// TopicPosition is how far the live rows are in a partition.
type TopicPosition struct {
	Partition int32
	Next      int64
	TopicIDs  [2]string // the lowest and the highest of the consumer groups'
}

// LoadTopicPositions reads how far the live rows of a projection are in a topic, by whichever
// consumer group is furthest.
func LoadTopicPositions(ctx context.Context, db readmodel.Querier, projection, topic string) ([]TopicPosition, error) {
	rows, err := db.Query(ctx, sql.Query("rebuild_positions"), projection, topic)
	if err != nil {
		return nil, fmt.Errorf("load positions: %w", err)
	}
	positions, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p TopicPosition, err error) {
		err = row.Scan(&p.Partition, &p.Next, &p.TopicIDs[0], &p.TopicIDs[1])
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("load positions: %w", err)
	}
	return positions, nil
}

// LoadOtherTopics names topics other than this one that rows of a projection have come
// from.
func LoadOtherTopics(ctx context.Context, pool *pgxpool.Pool, projection, topic string) ([]string, error) {
	return preparing(readmodel.Texts(ctx, pool, "rebuild_sources", projection, topic))
}

// LoadDependents names tables whose rows would change with a row that is replaced or
// removed.
func LoadDependents(ctx context.Context, pool *pgxpool.Pool, tables []string) ([]string, error) {
	return preparing(readmodel.Texts(ctx, pool, "rebuild_dependents", tables))
}

// LoadGrants are the grants on tables that are missing to have them copied and compared
// by this login and, if changed, to have rows replaced and removed, as statements.
func LoadGrants(ctx context.Context, pool *pgxpool.Pool, tables []readmodel.RebuildTable, changed bool) ([]string, error) {
	needed := []string{"SELECT"}
	if changed {
		needed = append(needed, "INSERT", "UPDATE", "DELETE")
	}
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.Name
	}
	return preparing(readmodel.Texts(ctx, pool, "rebuild_grants", names, needed))
}

// ShadowRoom is the disk space of the tables of a rebuild.
type ShadowRoom struct {
	Bytes   int64  // as much as the live tables, about
	Missing string // a privilege, without which they cannot be made; empty: none
}

// LoadShadowRoom checks whether there can be tables like these. How much disk space the server has
// left is not known.
func LoadShadowRoom(ctx context.Context, pool *pgxpool.Pool, tables []string) (room ShadowRoom, err error) {
	if err := pool.QueryRow(ctx, sql.Query("shadow_room"), tables).Scan(&room.Bytes, &room.Missing); err != nil {
		return room, fmt.Errorf("prepare the rebuild: %w", err)
	}
	return room, nil
}

func preparing(list []string, err error) ([]string, error) {
	if err != nil {
		return nil, fmt.Errorf("prepare the rebuild: %w", err)
	}
	return list, nil
}
