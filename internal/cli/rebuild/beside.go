package rebuild

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"projector/internal/cli/exit"
	"projector/internal/rebuild"
	"projector/internal/session"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// beside is a projection that is rebuilt beside the live one.
type beside interface {
	// prepare says how each partition is built.
	prepare(ctx context.Context, cfg *rebuild.Config) error
	Compare(ctx context.Context, opts readmodel.CompareOptions, catchUp readmodel.CatchUp) (readmodel.RebuildReport, error)
	// lookAhead spares what seems unknown because the consumers have not come to its events
	// yet, or not again: their positions may have been set back.
	lookAhead(ctx context.Context, report *readmodel.RebuildReport) error
	// concerned is how many would change, and of what.
	concerned(ctx context.Context, report *readmodel.RebuildReport) (n int64, of string, err error)
	// Digest is a hash over what Swap would write.
	Digest(ctx context.Context, removing bool) (string, error)
	Swap(ctx context.Context, opts readmodel.SwapOptions, catchUp readmodel.CatchUp) (readmodel.Swapped, error)
	// Moved takes into the report what a swap has left because others have written it.
	Moved(ctx context.Context, report *readmodel.RebuildReport, removing bool) error
	Close(ctx context.Context) error
}

// open makes the tables of the rebuild.
func (r *rebuilding) open(ctx context.Context) (err error) {
	switch kind := r.kind.(type) {
	case readmodel.AppendDefinition:
		var shadow *readmodel.RowShadow
		shadow, err = readmodel.OpenRowShadow(ctx, r.pool, kind)
		r.beside = &rows{shadow, r}
	case readmodel.OrderedDefinition:
		var shadow *readmodel.OrderedShadow
		if shadow, err = readmodel.OpenOrderedShadow(ctx, r.pool, kind); err == nil {
			r.beside = &ordered{&rows{shadow.RowShadow, r}, shadow}
		}
	case readmodel.BalanceDefinition:
		var shadow *readmodel.Shadow
		shadow, err = readmodel.OpenShadow(ctx, r.pool)
		r.beside = &balances{shadow, r}
	default:
		return exit.Refusef("%s cannot be rebuilt: rebuild does not know projections of the type %T", r.kind.Name(), kind)
	}
	if errors.Is(err, readmodel.ErrRebuilding) {
		return exit.Refuse(err.Error())
	}
	return err
}

// rows is a projection whose events each stand for themselves.
type rows struct {
	*readmodel.RowShadow
	rebuilding *rebuilding
}

func (s *rows) prepare(_ context.Context, cfg *rebuild.Config) error {
	topic := cfg.Topic
	cfg.Open = func(partition int32) session.Projection { return s.Open(topic, partition) }
	cfg.Overdue = func(context.Context, []int32) ([]int32, error) { return nil, nil } // nothing is parked
	return nil
}

// lookAhead implements beside: Compare does it.
func (s *rows) lookAhead(context.Context, *readmodel.RebuildReport) error { return nil }

func (s *rows) concerned(ctx context.Context, _ *readmodel.RebuildReport) (n int64, of string, err error) {
	of = "rows"
	if s.OfAccounts() {
		of = "accounts"
	}
	n, err = s.Concerned(ctx, s.rebuilding.cmd.Remove)
	return n, of, err
}

// ordered is a projection of one's own that is ordered: its rows belong to its accounts.
type ordered struct {
	*rows
	shadow *readmodel.OrderedShadow
}

func (s *ordered) prepare(ctx context.Context, cfg *rebuild.Config) error {
	r := s.rebuilding
	if err := r.skips(ctx, cfg, s.shadow.PassOver); err != nil {
		return err
	}
	run := readmodel.RunConfig{
		Formats: r.formats, FirstVersion: r.cmd.FirstVersion, ParkLimit: r.cmd.ParkLimit, ParkBytes: int64(r.cmd.ParkBytes), CacheBytes: func() int { return rebuild.CacheBytes },
	}
	topic := cfg.Topic
	cfg.Open = func(partition int32) session.Projection { return s.shadow.Open(run, topic, partition) }
	cfg.Overdue = func(ctx context.Context, partitions []int32) ([]int32, error) {
		return readmodel.LoadOverdue(ctx, s.Pool, r.kind.Name(), topic, partitions, 0)
	}
	return nil
}

// skips has the versions passed over again that people have passed over.
func (r *rebuilding) skips(ctx context.Context, cfg *rebuild.Config,
	passOver func(context.Context, readmodel.RepairConfig, *readmodel.AuditedEvent, bool) (bool, error),
) error {
	own, err := r.ownName()
	if err != nil {
		return err
	}
	skips, err := readmodel.LoadSkips(ctx, r.pool, own)
	if err != nil {
		return err
	}
	for _, a := range skips {
		cfg.Skips = append(cfg.Skips, rebuild.Skip{AccountID: a.AccountID, Version: a.Version, Place: a.Place})
	}
	repair := readmodel.RepairConfig{Formats: r.formats, FirstVersion: r.cmd.FirstVersion}
	cfg.PassOver = func(ctx context.Context, x *rebuild.Skip, seen bool) (bool, error) {
		return passOver(ctx, repair, &readmodel.AuditedEvent{AccountID: x.AccountID, Version: x.Version, Place: x.Place}, seen)
	}
	return nil
}

// ownName is the name of a projection of one's own; empty: it is built in.
func (r *rebuilding) ownName() (string, error) {
	p, err := r.cmd.Own()
	if p == nil {
		return "", err
	}
	return p.Name, nil
}

// balances are rebuilt account by account.
type balances struct {
	*readmodel.Shadow
	rebuilding *rebuilding
}

func (s *balances) prepare(ctx context.Context, cfg *rebuild.Config) error {
	r := s.rebuilding
	if err := r.skips(ctx, cfg, s.PassOver); err != nil {
		return err
	}
	opened := readmodel.BalanceConfig{
		Pool: s.Pool, Formats: r.formats, FirstVersion: r.cmd.FirstVersion, ParkLimit: rebuild.ParkLimit,
		CacheBytes: func() int { return rebuild.CacheBytes },
	}
	topic := cfg.Topic
	cfg.Open = func(partition int32) session.Projection {
		return readmodel.NewBalance(opened, readmodel.Partition{Group: "rebuild", Topic: topic, Number: partition})
	}
	cfg.Overdue = func(ctx context.Context, partitions []int32) ([]int32, error) {
		return readmodel.LoadOverdue(ctx, s.Pool, readmodel.BalanceName, topic, partitions, 0)
	}
	return nil
}

func (s *balances) concerned(_ context.Context, report *readmodel.RebuildReport) (n int64, of string, err error) {
	return s.rebuilding.cmd.wouldChange(report), "accounts", nil
}

// spareAtOnce is how many accounts are looked up at a time that have later events.
const spareAtOnce = 5000

func (s *balances) lookAhead(ctx context.Context, report *readmodel.RebuildReport) error {
	if report.Kinds[readmodel.RebuildUnknown] == 0 {
		return nil
	}
	now, err := s.rebuilding.source.extent(ctx)
	if err != nil {
		return err
	}
	for number, end := range now.ends {
		if err := s.lookAheadIn(ctx, report, number, end); err != nil {
			return err
		}
	}
	return nil
}

// lookAheadIn does it for one partition.
func (s *balances) lookAheadIn(ctx context.Context, report *readmodel.RebuildReport, number int32, end int64) error {
	r := s.rebuilding
	ids := map[string]struct{}{}
	spare := func() error {
		err := s.Spare(ctx, report, slices.Collect(maps.Keys(ids)))
		clear(ids)
		return err
	}
	for record, err := range r.source.Records(ctx, number, r.build.Next(number), end) {
		if err != nil {
			return err
		}
		account, err := r.accountOf(ctx, &record)
		if err != nil {
			return err
		}
		if account != "" {
			ids[readmodel.Storable(strings.Clone(account))] = struct{}{}
		}
		if len(ids) >= spareAtOnce {
			if err := spare(); err != nil {
				return err
			}
		}
	}
	return spare()
}

// accountOf reads which account a record is about, "" when it does not say.
func (r *rebuilding) accountOf(ctx context.Context, record *projection.Record) (string, error) {
	format, err := r.formats.Resolve(ctx, record.Message)
	if err != nil {
		return "", err
	}
	var d event.Decoded
	format.Decode(record.Message, &d)
	return d.Event.AccountID, nil
}
