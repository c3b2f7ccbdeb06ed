package readmodel

import (
	"context"
	"errors"
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
	state     *accountState   // nil: events are in no order
	positions []TopicPosition // where the rows were compared
	markers   int64           // that are missing in the live inbox
}

// OpenRowShadow makes the tables of the projection once more, empty. What an earlier rebuild
// has left is dropped. ErrRebuilding means that one is under way.
func OpenRowShadow(ctx context.Context, live *pgxpool.Pool, kind AppendDefinition) (*RowShadow, error) {
	return openRowShadow(ctx, live, kind, nil)
}

func openRowShadow(ctx context.Context, live *pgxpool.Pool, kind AppendDefinition, state *accountState) (*RowShadow, error) {
	s := &RowShadow{kind: kind, state: state}
	var noted []string
	for _, t := range s.kind.RebuildTables {
		table, err := loadRowTable(ctx, live, t)
		if err != nil {
			return nil, err
		}
		s.tables, noted = append(s.tables, table), append(noted, t.Name)
	}
	copied := noted
	if s.kind.Remembers != nil {
		s.inbox = markerTable(s.kind.Label)
		noted = append(noted, s.inbox.Name)
		copied = append(slices.Clone(noted), "inbox_pruned")
	}
	if state != nil {
		copied = slices.Clone(copied)
		for _, t := range state.tables() {
			copied = append(copied, t.Name)
		}
	}
	var behind []string
	if s.kind.Own { // its SQL may name functions and tables that it only reads, and the view of events
		copied = append(slices.Clone(copied), "projection_file")
		var err error
		if behind, err = preparing(texts(ctx, live, "own_schemas")); err != nil {
			return nil, err
		}
	}
	b, err := openBeside(ctx, live, copied, noted, behind...)
	if err != nil {
		return nil, err
	}
	s.beside = b
	if s.kind.Rebuildable != nil {
		if err := s.kind.Rebuildable(ctx, s.Pool); err != nil {
			return nil, errors.Join(fmt.Errorf("prepare the rebuild: %w", err), b.Close(ctx))
		}
	}
	return s, nil
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
	return n + s.state.counted(removing), nil
}

// Digest is a hash over what a swap would write.
func (s *RowShadow) Digest(ctx context.Context, removing bool) (string, error) {
	statements := make([]string, len(s.tables))
	for i, t := range s.tables {
		statements[i] = t.statement("rows_plan")
	}
	digest, err := s.digest(ctx, statements, removing)
	if s.state != nil {
		digest += s.state.plan
	}
	return digest, err
}

// OfAccounts reports whether that is accounts.
func (s *RowShadow) OfAccounts() bool {
	return !slices.ContainsFunc(s.tables, func(t *rowTable) bool { return !t.ofAccounts })
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
