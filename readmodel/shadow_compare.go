package readmodel

import (
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

// Digest is a hash over what a swap would write.
func (s *Shadow) Digest(ctx context.Context, removing bool) (string, error) {
	return s.digest(ctx, []string{sql.Query("shadow_plan")}, removing)
}

// CompareOptions say what to make of what differs.
type CompareOptions struct {
	Topic string
	// Corrections are the dead letters that people have applied; nil: none. It is asked when
	// the rebuilt tables are where they are to be.
	Corrections func() []Correction
	Partial     bool // the topic has lost records: what it does not know is left alone
	ParkLimit   int64
	ParkBytes   int64 // 0: any
	List        int   // at most so many differences
}

func (o *CompareOptions) corrections() []Correction {
	if o.Corrections == nil {
		return nil
	}
	return o.Corrections()
}

// Correction is a dead letter that somebody has applied to the database.
type Correction struct {
	AccountID string
	Version   int64
	EventID   string // empty: not known
	Given     bool   // the topic gives it in a form that can be applied, too
}

// Compare compares the live tables, as they are at one moment, with the shadow, which
// catchUp has to bring exactly to the positions they are at then. What is to be
// changed is noted in the shadow for Swap.
func (s *Shadow) Compare(ctx context.Context, opts CompareOptions, catchUp CatchUp) (RebuildReport, error) {
	c := &shadowComparison{shadow: s, opts: opts, corrected: map[string]bool{}, report: RebuildReport{Kinds: map[RebuildKind]int64{}}}
	err := s.compared(ctx, BalanceName, opts.Topic, catchUp, func(live, rebuilt pgx.Tx) error {
		for _, x := range opts.corrections() {
			if !x.Given {
				c.corrected[x.AccountID] = true
			}
		}
		return c.run(ctx, live, rebuilt)
	})
	if err == nil {
		err = c.note(ctx, 0)
	}
	if err == nil {
		err = s.analyze(ctx)
	}
	if err != nil {
		return c.report, fmt.Errorf("compare: %w", err)
	}
	return c.report, nil
}

// shadowRow is an account in the live tables or in the shadow's.
type shadowRow struct {
	id      string
	exists  bool
	version int64
	content string
	hold    string
}

func shadowRows(ctx context.Context, tx pgx.Tx, opts *CompareOptions) iter.Seq2[*shadowRow, error] {
	return func(yield func(*shadowRow, error) bool) {
		rows, err := tx.Query(ctx, sql.Query("rebuild_rows"), opts.ParkLimit, opts.ParkBytes)
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

func (c *shadowComparison) run(ctx context.Context, live, rebuilt pgx.Tx) error {
	return merged(shadowRows(ctx, live, &c.opts), shadowRows(ctx, rebuilt, &c.opts),
		func(r *shadowRow) string { return r.id }, func(a, b *shadowRow) error { return c.take(ctx, a, b) })
}

// merged calls take for each id of two streams that are in the order of their ids; of an id
// that only one of them has the other is nil.
func merged[T any](as, bs iter.Seq2[*T, error], id func(*T) string, take func(a, b *T) error) error {
	nextA, stopA := iter.Pull2(as)
	defer stopA()
	nextB, stopB := iter.Pull2(bs)
	defer stopB()
	a, err, _ := nextA()
	if err != nil {
		return err
	}
	b, err, _ := nextB()
	for err == nil && (a != nil || b != nil) {
		x, y := a, b
		if x != nil && y != nil && id(x) < id(y) {
			y = nil
		} else if x != nil && y != nil && id(y) < id(x) {
			x = nil
		}
		if err = take(x, y); err == nil && x != nil {
			a, err, _ = nextA()
		}
		if err == nil && y != nil {
			b, err, _ = nextB()
		}
	}
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
		d.ID, d.Version = live.id, live.versionOrNil()
	}
	if rebuilt != nil {
		d.ID, d.Rebuilt = rebuilt.id, rebuilt.versionOrNil()
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
			return []any{d.ID, string(d.Kind), d.Version}, nil
		}))
	c.noted = c.noted[:0]
	return err
}
