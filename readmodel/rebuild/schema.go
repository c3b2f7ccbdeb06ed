package rebuild

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/readmodel"
	"projector/sql"
)

const shadowSchema = "projector_rebuild"

// ErrRebuilding means that another rebuild is running.
var ErrRebuilding = errors.New("another rebuild of this database is under way")

// schema is the schema of a rebuild. It has shadow tables with the columns of the live tables.
type schema struct {
	live *pgxpool.Pool
	lock *pgxpool.Conn
	// Pool has the shadow tables first in its search_path. A projection that uses Pool therefore
	// writes to the shadow tables.
	Pool *pgxpool.Pool
}

// openSchema creates the schema by a function of the database, which the role must be allowed to
// call. It creates empty copies of the tables in copied and of the positions, and tables for the
// differences of the tables in noted. It drops tables that an earlier rebuild left. It returns
// ErrRebuilding if another rebuild is running.
func openSchema(ctx context.Context, live *pgxpool.Pool, copied, noted []string, others ...string) (*schema, error) {
	pool, err := shadowPool(ctx, live, others...)
	if err != nil {
		return nil, fmt.Errorf("prepare the rebuild: %w", err)
	}
	b := &schema{live: live, Pool: pool}
	if b.lock, err = lockSchema(ctx, live); err != nil {
		pool.Close()
		return nil, err
	}
	copied = append([]string{"projector_position", "projector_source"}, copied...)
	if err = b.tables(ctx, copied, noted); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the rebuild: %w", err), b.Close(ctx))
	}
	return b, nil
}

// lockSchema returns a session that has locked the shadow schema.
func lockSchema(ctx context.Context, live *pgxpool.Pool) (*pgxpool.Conn, error) {
	lock, err := live.Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("prepare the rebuild: %w", err)
	}
	free := false
	if _, err = lock.Exec(ctx, sql.Query("shadow_session")); err == nil {
		free, err = readmodel.One[bool](ctx, lock, preparing, "shadow_lock")
	}
	if err == nil && !free {
		err = ErrRebuilding
	}
	if err != nil {
		lock.Release()
		return nil, err
	}
	return lock, nil
}

// shadowPool returns a pool whose search_path has the shadow schema, then the other schemas. It
// connects once, because a pooler may refuse or ignore a search_path. A rebuild must not begin then.
func shadowPool(ctx context.Context, live *pgxpool.Pool, others ...string) (*pgxpool.Pool, error) {
	cfg := live.Config()
	cfg.ConnConfig.RuntimeParams["search_path"] = strings.Join(append([]string{shadowSchema}, others...), ", ")
	cfg.MinConns, cfg.MinIdleConns = 0, 0
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("use the shadow tables, which needs a direct connection to PostgreSQL: %w", err)
	}
	return pool, nil
}

// tables drops the schema with all its tables. Unless the list copied is empty, it then creates the
// schema with shadow tables and tables of differences.
func (b *schema) tables(ctx context.Context, copied, noted []string) error {
	_, err := b.lock.Exec(ctx, sql.Query("shadow_tables"), copied, noted)
	return err
}

// Close drops the schema.
func (b *schema) Close(ctx context.Context) error {
	b.Pool.Close()
	err := b.tables(ctx, []string{}, []string{})
	if _, unlockErr := b.lock.Exec(ctx, sql.Query("shadow_unlock")); unlockErr != nil {
		_ = b.lock.Conn().Close(ctx) // the end of the session releases the lock
	}
	b.lock.Release()
	if err != nil {
		return fmt.Errorf("drop the tables of the rebuild: %w", err)
	}
	return nil
}

// compared runs fn with a snapshot of the live tables and a snapshot of the shadow tables. The
// function catchUp has to bring the shadow tables exactly to the positions of the live snapshot.
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
			if err := reached(ctx, rebuilt, topic, positions); err != nil {
				return err
			}
			return fn(live, rebuilt, positions)
		})
	})
}

// reached returns an error if the shadow tables are not exactly at the given positions.
func reached(ctx context.Context, db readmodel.Querier, topic string, positions []TopicPosition) error {
	at, err := readmodel.Map[int32, int64](ctx, db, "read the positions of the rebuild", sql.Query("shadow_positions"), topic)
	if err != nil {
		return err
	}
	for _, p := range positions {
		if next, known := at[p.Partition]; !known || next != p.Next {
			return errclass.Text(fmt.Sprintf("the tables of the rebuild are not where they were brought to in partition %d: "+
				"did PostgreSQL crash, or is somebody else using them? Run it again", p.Partition))
		}
	}
	return nil
}

// TopicPosition is the position of the live tables in a partition.
type TopicPosition struct {
	Partition           int32
	Next                int64
	LowestID, HighestID string // of the topic, among the consumer groups
}

// LoadTopicPositions reads the positions of a projection in a topic. If there are several consumer
// groups, it uses the highest position.
func LoadTopicPositions(ctx context.Context, db readmodel.Querier, projection, topic string) ([]TopicPosition, error) {
	return readmodel.All[TopicPosition](ctx, db, "load positions", "rebuild_positions", projection, topic)
}

// preparing begins the errors of queries before a rebuild.
const preparing = "prepare the rebuild"

// LoadDependents returns tables whose rows PostgreSQL would change or delete, because of a foreign
// key, when a rebuild deletes a row.
func LoadDependents(ctx context.Context, pool *pgxpool.Pool, tables []string) ([]string, error) {
	return readmodel.Texts(ctx, pool, preparing, "rebuild_dependents", tables)
}

// LoadGrants returns, as GRANT statements, the privileges that are missing to copy and compare the
// tables. They are privileges of this login and of the owner of the function that copies the
// tables. If changed is true, it also returns the missing privileges to replace and remove rows.
func LoadGrants(ctx context.Context, pool *pgxpool.Pool, tables []readmodel.RebuildTable, changed bool) ([]string, error) {
	needed := []string{"SELECT"}
	if changed {
		needed = append(needed, "INSERT", "UPDATE", "DELETE")
	}
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.Name
	}
	return readmodel.Texts(ctx, pool, preparing, "rebuild_grants", names, needed)
}

// ShadowRoom describes the disk space that the shadow tables need.
type ShadowRoom struct {
	Bytes   int64  // about the size of the live tables
	Missing string // a missing privilege without which the shadow tables cannot be created
}

// LoadShadowRoom loads what is needed to create shadow tables for these tables. It does not know
// the free disk space of the server.
func LoadShadowRoom(ctx context.Context, pool *pgxpool.Pool, tables []string) (room ShadowRoom, err error) {
	if err := pool.QueryRow(ctx, sql.Query("shadow_room"), tables).Scan(&room.Bytes, &room.Missing); err != nil {
		return room, fmt.Errorf("prepare the rebuild: %w", err)
	}
	return room, nil
}
