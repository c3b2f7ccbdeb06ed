package rebuild

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/internal/session"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/appended"
	"projector/readmodel/balance"
	"projector/sql"
)

// Shadow is a projection that is rebuilt in shadow tables, from the first record of its topic.
type Shadow struct {
	*schema
	kind     readmodel.Definition
	tables   []*rowTable   // tables whose rows are replaced
	inbox    *rowTable     // nil if the projection has no markers in the inbox
	accounts *accountState // nil if the projection does not order events by account
	custom   bool          // it is a custom projection, so the meaning of its rows is unknown

	begun     int64           // last row of the audit trail at the start; later actions are not in the shadow tables
	positions []TopicPosition // positions at the comparison
	compared  string          // snapshot of the comparison
	found     *comparison
	later     later
	build     *Build          // fills the tables; nil in tests that fill them without a Build
	moved     map[string]Kind // new kinds of listed differences that the swap did not change, by ID
}

// unknownType returns the error that package rebuild does not know a projection's type.
func unknownType(kind readmodel.Definition) error {
	return errclass.Text(fmt.Sprintf("%s cannot be rebuilt: rebuild does not know projections of the type %T", kind.Name(), kind))
}

// OpenShadow creates the shadow tables of a projection. At first, they contain only the openings of
// accounts. It drops tables that an earlier rebuild left. parkLimit and parkBytes are the limits of
// the consumers. It returns ErrRebuilding if another rebuild is running.
func OpenShadow(ctx context.Context, live *pgxpool.Pool, kind readmodel.Definition, parkLimit, parkBytes int64) (_ *Shadow, err error) {
	s := &Shadow{kind: kind, custom: kind.Custom()}
	var check func(context.Context, *pgxpool.Pool) error
	var shown []readmodel.RebuildTable
	switch kind := kind.(type) {
	case balance.Definition:
		shown, check = kind.RebuildTables, kind.Rebuildable
		s.accounts, err = newAccountState(ctx, live, kind.Label, parkLimit, parkBytes)
	case appended.Definition:
		shown, check = kind.RebuildTables, kind.Rebuildable
		if kind.Remembers != nil {
			s.inbox = markerTable(kind.Label)
		}
	default:
		err = unknownType(kind)
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

// make returns the tables to copy and the tables whose differences are noted. It also returns the
// schemas of tables that the SQL of a custom projection only reads.
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
		others, err = readmodel.Texts(ctx, live, preparing, "custom_schemas")
	}
	return copied, noted, others, err
}

// begin copies the openings of accounts into the shadow tables. It remembers the last row of the
// audit trail, because the shadow tables do not have the effects of later actions.
func (s *Shadow) begin(ctx context.Context) error {
	if err := s.lock.QueryRow(ctx, sql.Query("rebuild_begin")).Scan(&s.begun); err != nil {
		return err
	}
	if s.accounts == nil || !s.accounts.balances {
		return nil
	}
	_, err := s.lock.Exec(ctx, sql.Query("shadow_openings"))
	return err
}

// Open opens the projection for one partition. The opened projection writes to the shadow tables
// and parks events without a limit.
func (s *Shadow) Open(cfg readmodel.RunConfig, topic string, partition int32) session.Projection {
	p := readmodel.Partition{Projection: s.kind.Name(), Group: "rebuild", Topic: topic, Number: partition}
	cfg.Pool, cfg.ParkLimit, cfg.ParkBytes = s.Pool, math.MaxInt64, 0
	if kind, ok := s.kind.(appended.Definition); ok {
		kind.Recent = nil // otherwise the cache would be counted in the consumers' metrics
		return kind.Open(cfg)(p)
	}
	return s.kind.Open(cfg)(p)
}

// Overdue returns the partitions that have parked events which can be applied now.
func (s *Shadow) Overdue(ctx context.Context, topic string, partitions []int32) ([]int32, error) {
	if s.accounts == nil {
		return nil, nil
	}
	return accountdb.LoadOverdue(ctx, s.Pool, s.kind.Name(), topic, partitions, 0)
}

// Opened says whether accounts start with an opening, and how many do not.
type Opened struct {
	Some    bool   // at least one account has an opening
	Lacking int64  // accounts without an opening
	Example string // an account without an opening
}

// LoadOpened counts the accounts without an opening. These cannot be rebuilt without the beginning
// of the topic.
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
