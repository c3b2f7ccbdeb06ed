package readmodel

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"projector/sql"
)

// Spare leaves those of the given accounts alone that Compare has found unknown: they
// have events further on in the topic, so the live tables have been there.
func (s *Shadow) Spare(ctx context.Context, r *RebuildReport, ids []string) error {
	rows, err := s.Pool.Query(ctx, sql.Query("rebuild_spare"), ids)
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	spared := map[string]RebuildKind{}
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error { spared[id] = RebuildUnknown; return nil }); err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	r.become(RebuildAhead, spared)
	return nil
}

// Moved takes into the report which accounts a swap has left because others have written
// them since they were compared.
func (s *Shadow) Moved(ctx context.Context, r *RebuildReport, removing bool) error {
	rows, err := s.Pool.Query(ctx, sql.Query("swap_left"), removing)
	if err != nil {
		return fmt.Errorf("swap: %w", err)
	}
	left := map[string]RebuildKind{}
	var (
		id   string
		kind RebuildKind
	)
	if _, err := pgx.ForEachRow(rows, []any{&id, &kind}, func() error { left[id] = kind; return nil }); err != nil {
		return fmt.Errorf("swap: %w", err)
	}
	r.become(RebuildMoved, left)
	return nil
}

// CompareOptions say what to make of what differs.
type CompareOptions struct {
	Topic string
	// Corrected names the accounts that the topic alone cannot rebuild; nil: none. It is
	// asked when the shadow is where it is to be.
	Corrected func() map[string]bool
	Partial   bool // the topic has lost records: what it does not know is left alone
	ParkLimit int64
	List      int // at most so many differences
}

// Compare compares the live tables, as they are at one moment, with the shadow, which
// catchUp has to bring exactly to the positions they are at then. What is to be
// changed is noted in the shadow for Swap.
func (s *Shadow) Compare(ctx context.Context, opts CompareOptions, catchUp CatchUp) (RebuildReport, error) {
	c := &shadowComparison{shadow: s, opts: opts, report: RebuildReport{Kinds: map[RebuildKind]int64{}}}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.live, options, func(live pgx.Tx) error {
		if _, err := live.Exec(ctx, sql.Query("rebuild_session")); err != nil {
			return err
		}
		positions, err := LoadTopicPositions(ctx, live, opts.Topic)
		if err != nil {
			return err
		}
		if err := catchUp(ctx, positions, false); err != nil {
			return err
		}
		if opts.Corrected != nil {
			c.corrected = opts.Corrected()
		}
		return pgx.BeginTxFunc(ctx, s.Pool, options, func(rebuilt pgx.Tx) error {
			return c.runAt(ctx, live, rebuilt, positions)
		})
	})
	if err == nil {
		err = c.note(ctx, 0)
	}
	if err == nil {
		_, err = s.live.Exec(ctx, sql.Query("shadow_analyze"))
	}
	if err != nil {
		return c.report, fmt.Errorf("compare: %w", err)
	}
	return c.report, nil
}

// ShadowLostError says that the shadow is not where it was brought to.
type ShadowLostError struct{ Partition int32 }

// Error implements error.
func (e *ShadowLostError) Error() string {
	return fmt.Sprintf("the tables of the rebuild are not where they were brought to in partition %d: "+
		"did PostgreSQL crash, or is somebody else using them? Run it again", e.Partition)
}

// SafeText implements errclass.Describer.
func (e *ShadowLostError) SafeText() string { return e.Error() }

// loadPositions reads where the shadow is, by partition.
func (s *Shadow) loadPositions(ctx context.Context, db querier, topic string) (map[int32]int64, error) {
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

// shadowRow is an account in the live tables or in the shadow's.
type shadowRow struct {
	id      string
	exists  bool
	version int64
	content string
	hold    string
}

func shadowRows(ctx context.Context, tx pgx.Tx, parkLimit int64) iter.Seq2[*shadowRow, error] {
	return func(yield func(*shadowRow, error) bool) {
		rows, err := tx.Query(ctx, sql.Query("rebuild_rows"), parkLimit)
		if err != nil {
			yield(nil, err)
			return
		}
		var r shadowRow
		stopped := false
		_, err = pgx.ForEachRow(rows, []any{&r.id, &r.exists, &r.version, &r.content, &r.hold}, func() error {
			row := r
			if stopped = !yield(&row, nil); stopped {
				return errStopped
			}
			return nil
		})
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// shadowComparison merges the two, which are in one order.
type shadowComparison struct {
	shadow    *Shadow
	opts      CompareOptions
	corrected map[string]bool
	report    RebuildReport
	noted     []RebuildDifference
}

// runAt compares the two when the shadow is exactly at the positions.
func (c *shadowComparison) runAt(ctx context.Context, live, rebuilt pgx.Tx, positions []TopicPosition) error {
	if _, err := rebuilt.Exec(ctx, sql.Query("rebuild_session")); err != nil {
		return err
	}
	at, err := c.shadow.loadPositions(ctx, rebuilt, c.opts.Topic)
	if err != nil {
		return err
	}
	for _, p := range positions {
		if next, known := at[p.Partition]; !known || next != p.Next {
			return &ShadowLostError{p.Partition}
		}
	}
	return c.run(ctx, live, rebuilt)
}

func (c *shadowComparison) run(ctx context.Context, live, rebuilt pgx.Tx) error {
	a, stopLive := newShadowSide(shadowRows(ctx, live, c.opts.ParkLimit))
	defer stopLive()
	b, stopRebuilt := newShadowSide(shadowRows(ctx, rebuilt, c.opts.ParkLimit))
	defer stopRebuilt()
	if err := cmp.Or(a.advance(), b.advance()); err != nil {
		return err
	}
	for a.row != nil || b.row != nil {
		x, y := a.row, b.row
		if x != nil && y != nil && x.id < y.id {
			y = nil
		} else if x != nil && y != nil && y.id < x.id {
			x = nil
		}
		if err := c.take(ctx, x, y); err != nil {
			return err
		}
		if x != nil {
			if err := a.advance(); err != nil {
				return err
			}
		}
		if y != nil {
			if err := b.advance(); err != nil {
				return err
			}
		}
	}
	return nil
}

// shadowSide is one of the two streams that are merged, at its next row; nil: it has ended.
type shadowSide struct {
	row  *shadowRow
	next func() (*shadowRow, error, bool)
}

func newShadowSide(rows iter.Seq2[*shadowRow, error]) (side *shadowSide, stop func()) {
	next, stop := iter.Pull2(rows)
	return &shadowSide{next: next}, stop
}

func (s *shadowSide) advance() (err error) {
	s.row, err, _ = s.next()
	return err
}

// take compares one account; either may be nil, not both.
func (c *shadowComparison) take(ctx context.Context, live, rebuilt *shadowRow) error {
	c.report.Checked++
	kind := c.differs(live, rebuilt)
	if kind == "" {
		c.report.Matched++
		return nil
	}
	d := RebuildDifference{Kind: kind}
	if live != nil {
		d.AccountID, d.Version = live.id, live.versionOrNil()
	}
	if rebuilt != nil {
		d.AccountID, d.Rebuilt = rebuilt.id, rebuilt.versionOrNil()
	}
	if len(c.report.Differences) < c.opts.List {
		c.report.Differences = append(c.report.Differences, d)
	}
	c.report.Kinds[kind]++
	if !kind.changes() {
		return nil
	}
	c.noted = append(c.noted, d)
	const chunk = 10_000
	return c.note(ctx, chunk)
}

// differs tells in what way an account differs, "" when it does not.
func (c *shadowComparison) differs(live, rebuilt *shadowRow) RebuildKind {
	switch {
	case live != nil && rebuilt != nil && live.exists == rebuilt.exists && live.version == rebuilt.version &&
		live.content == rebuilt.content && live.hold == rebuilt.hold:
		return ""
	case live != nil && c.corrected[live.id]:
		return RebuildCorrected
	case rebuilt == nil && c.opts.Partial:
		return RebuildAhead
	case rebuilt == nil:
		return RebuildUnknown
	case live == nil:
		return RebuildMissing
	case live.exists && (!rebuilt.exists || rebuilt.version < live.version):
		return RebuildAhead
	case !live.exists && rebuilt.exists:
		return RebuildMissing
	case live.version != rebuilt.version || live.content != rebuilt.content:
		return RebuildDifferent
	default:
		return RebuildHold
	}
}

func (r *shadowRow) versionOrNil() *int64 {
	if !r.exists {
		return nil
	}
	return &r.version
}

// note writes down what is to be changed when there are at least so many.
func (c *shadowComparison) note(ctx context.Context, atLeast int) error {
	if len(c.noted) == 0 || len(c.noted) < atLeast {
		return nil
	}
	_, err := c.shadow.Pool.CopyFrom(ctx, pgx.Identifier{shadowSchema, "difference"}, []string{"account_id", "kind", "version"},
		pgx.CopyFromSlice(len(c.noted), func(i int) ([]any, error) {
			d := &c.noted[i]
			return []any{d.AccountID, string(d.Kind), d.Version}, nil
		}))
	c.noted = c.noted[:0]
	return err
}
