package readmodel

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/session"
)

// RowShadow is a projection whose events each stand for themselves, rebuilt beside the
// live one.
type RowShadow struct {
	*beside
	kind      AppendDefinition
	tables    []*rowTable
	inbox     *rowTable       // nil: what keeps an event from being taken in twice is the table itself
	positions []TopicPosition // where the rows were compared
	markers   int64           // that are missing in the live inbox
}

// OpenRowShadow makes the tables of the projection once more, empty; it needs the right to
// create a schema. What an earlier rebuild has left is dropped. ErrRebuilding means that one
// is under way.
func OpenRowShadow(ctx context.Context, live *pgxpool.Pool, kind AppendDefinition) (*RowShadow, error) {
	s := &RowShadow{kind: kind}
	b, err := openBeside(ctx, live, s.create)
	if err != nil {
		return nil, err
	}
	s.beside = b
	return s, nil
}

func (s *RowShadow) create(ctx context.Context, conn *pgxpool.Conn) error {
	for _, t := range s.kind.RebuildTables {
		table, err := loadRowTable(ctx, conn, t)
		if err != nil {
			return err
		}
		s.tables = append(s.tables, table)
	}
	made := s.tables
	if s.kind.Remembers != nil {
		s.inbox = markerTable(s.kind.Label)
		made = append(made[:len(made):len(made)], s.inbox)
		pruned := newRowTable(RebuildTable{Name: "inbox_pruned"}, "", "", nil)
		if _, err := conn.Exec(ctx, pruned.statement("rows_create")); err != nil {
			return err
		}
	}
	for _, t := range made {
		for _, statement := range []string{"rows_create", "rows_difference"} {
			if _, err := conn.Exec(ctx, t.statement(statement)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Open makes the projection of one partition of the topic that is read again.
func (s *RowShadow) Open(topic string, partition int32) session.Projection {
	p := Partition{Projection: s.kind.Label, Group: "rebuild", Topic: topic, Number: partition}
	return NewAppendProjection(AppendConfig{Pool: s.Pool, Partition: p, Table: s.kind.Tables(p)})
}

// Concerned is how many accounts would be changed, or rows where they are of none: what
// people allow.
func (s *RowShadow) Concerned(ctx context.Context, removing bool) (n int64, err error) {
	for _, t := range s.tables {
		var some int64
		if err := s.Pool.QueryRow(ctx, t.statement("rows_count"), removing).Scan(&some); err != nil {
			return 0, fmt.Errorf("compare: %w", err)
		}
		n += some
	}
	return n, nil
}

// OfAccounts reports whether that is accounts.
func (s *RowShadow) OfAccounts() bool {
	return !slices.ContainsFunc(s.tables, func(t *rowTable) bool { return !t.ofAccounts })
}

// analyze tells PostgreSQL what there is now.
func (s *RowShadow) analyze(ctx context.Context) error {
	for _, t := range s.tables {
		if _, err := s.Pool.Exec(ctx, t.statement("rows_analyze")); err != nil {
			return err
		}
	}
	return nil
}

// take has the rows that a statement returns, by their ids and kinds.
func (s *RowShadow) take(ctx context.Context, statement string, args ...any) (map[string]RebuildKind, error) {
	rows, err := s.Pool.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	taken := map[string]RebuildKind{}
	var (
		id   string
		kind RebuildKind
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &kind}, func() error { taken[id] = kind; return nil })
	return taken, err
}

// Moved takes into the report which rows a swap has left because others have written them
// since they were compared.
func (s *RowShadow) Moved(ctx context.Context, r *RebuildReport, removing bool) error {
	for _, t := range s.tables {
		left, err := s.take(ctx, t.statement("rows_left"), removing)
		if err != nil {
			return fmt.Errorf("swap: %w", err)
		}
		r.become(RebuildMoved, left)
	}
	return nil
}
