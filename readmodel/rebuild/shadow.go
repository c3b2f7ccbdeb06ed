package rebuild

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/session"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/appended"
	"projector/readmodel/balance"
	"projector/sql"
)

// Shadow is a projection rebuilt from the first record of its topic, in shadow tables.
type Shadow struct {
	*schema
	kind     readmodel.Definition
	tables   []*rowTable   // whose rows are replaced
	inbox    *rowTable     // nil: what keeps an event from being applied twice is a table itself
	accounts *accountState // nil: events are in no order
	custom   bool          // its SQL is a file's: what its rows are made of is not known

	begun     string          // a snapshot: what was done before is in the rebuilt tables
	positions []TopicPosition // where the tables were compared
	compared  string          // a snapshot
	found     *comparison
	later     later
	build     *Build                   // fills the tables; nil: a test does
	moved     map[Kind]map[string]Kind // left alone by the swap, by what they are now
}

// UnknownDefinitionError says that rebuild does not know what a projection consists of.
type UnknownDefinitionError struct{ Definition readmodel.Definition }

// Error implements error.
func (e *UnknownDefinitionError) Error() string {
	return fmt.Sprintf("%s cannot be rebuilt: rebuild does not know projections of the type %T", e.Definition.Name(), e.Definition)
}

// SafeText implements errclass.Describer.
func (e *UnknownDefinitionError) SafeText() string { return e.Error() }

// OpenShadow makes the tables of a projection once more, empty but for the openings of accounts.
// What an earlier rebuild has left is dropped. parkLimit and parkBytes are the consumers'. ErrRebuilding means
// that another rebuild is under way.
func OpenShadow(ctx context.Context, live *pgxpool.Pool, kind readmodel.Definition, parkLimit, parkBytes int64) (_ *Shadow, err error) {
	s := &Shadow{kind: kind}
	var check func(context.Context, *pgxpool.Pool) error
	var shown []readmodel.RebuildTable
	switch kind := kind.(type) {
	case balance.Definition:
		s.accounts, err = newAccountState(ctx, live, "", parkLimit, parkBytes)
	case balance.OrderedDefinition:
		s.custom, shown, check = true, kind.RebuildTables, kind.Rebuildable
		s.accounts, err = newAccountState(ctx, live, kind.Label, parkLimit, parkBytes)
	case appended.Definition:
		s.custom, shown, check = kind.Own, kind.RebuildTables, kind.Rebuildable
		if kind.Remembers != nil {
			s.inbox = markerTable(kind.Label)
		}
	default:
		err = &UnknownDefinitionError{kind}
	}
	if err != nil {
		return nil, err
	}
	copied, noted, others, err := s.make(ctx, live, shown)
	if err != nil {
		return nil, err
	}
	if s.schema, err = openSchema(ctx, live, copied, noted, others...); err != nil {
		return nil, err
	}
	if err = s.begin(ctx); err == nil && check != nil {
		err = check(ctx, s.Pool)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare the rebuild: %w", err), s.Close(ctx))
	}
	return s, nil
}

// make names the tables that are copied, those of which differences are noted, and the schemas
// in which the SQL of a custom projection finds what it only reads.
func (s *Shadow) make(ctx context.Context, live *pgxpool.Pool, shown []readmodel.RebuildTable) (copied, noted, others []string, err error) {
	for _, t := range shown {
		columns, err := loadColumns(ctx, live, t.Name)
		if err != nil {
			return nil, nil, nil, err
		}
		s.tables = append(s.tables, newRowTable(rowSource{RebuildTable: t, columns: columns}))
		copied, noted = append(copied, t.Name), append(noted, t.Name)
	}
	if s.inbox != nil {
		copied, noted = append(copied, "inbox", "inbox_pruned"), append(noted, "inbox")
	}
	if s.accounts != nil {
		copied, noted = append(copied, s.accounts.copied()...), append(noted, s.accounts.account.Name)
		if s.accounts.balances {
			copied = append(copied, "account_opening")
		}
	}
	if s.custom {
		copied = append(copied, "projection_file")
		others, err = readmodel.Texts(ctx, live, "custom_schemas")
	}
	return copied, noted, others, err
}

// Begin has accounts start with their openings, and remembers from when on people's actions are
// not in the rebuilt tables.
func (s *Shadow) begin(ctx context.Context) error {
	if err := s.lock.QueryRow(ctx, sql.Query("rebuild_snapshot")).Scan(&s.begun); err != nil {
		return err
	}
	if s.accounts == nil || !s.accounts.balances {
		return nil
	}
	_, err := s.lock.Exec(ctx, sql.Query("shadow_openings"))
	return err
}

// Open makes the projection of one partition of the topic, which writes the rebuilt tables. It
// parks whatever comes early: the park limit holds for the live tables.
func (s *Shadow) Open(cfg readmodel.RunConfig, topic string, partition int32) session.Projection {
	p := readmodel.Partition{Projection: s.kind.Name(), Group: "rebuild", Topic: topic, Number: partition}
	cfg.Pool, cfg.ParkLimit, cfg.ParkBytes = s.Pool, math.MaxInt64, 0
	if kind, ok := s.kind.(appended.Definition); ok {
		kind.Recent = nil // the cache of consumers counts for metrics
		return kind.Open(cfg)(p)
	}
	return s.kind.Open(cfg)(p)
}

// Overdue names those of the partitions in which parked events can be applied.
func (s *Shadow) Overdue(ctx context.Context, topic string, partitions []int32) ([]int32, error) {
	if s.accounts == nil {
		return nil, nil
	}
	return accountdb.LoadOverdue(ctx, s.Pool, s.kind.Name(), topic, partitions, 0)
}

// Opened says how far accounts start with an opening.
type Opened struct {
	Some    bool   // there is one that does
	Lacking int64  // accounts that start with their first event
	Example string // one of them
}

// LoadOpened counts the accounts that cannot be rebuilt without the beginning of the topic.
func LoadOpened(ctx context.Context, pool *pgxpool.Pool) (o Opened, err error) {
	err = pgx.BeginTxFunc(ctx, pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sql.Query("rebuild_session")); err != nil {
			return err
		}
		return tx.QueryRow(ctx, sql.Query("rebuild_opened")).Scan(&o.Some, &o.Lacking, &o.Example)
	})
	if err != nil {
		return o, fmt.Errorf("count accounts without an opening: %w", err)
	}
	return o, nil
}
