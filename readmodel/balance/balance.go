package balance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"

	"projector/internal/pace"
	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/accounts"
)

// Config is the configuration of a Balance.
type Config struct {
	readmodel.RunConfig
	// Projection is the name of a custom projection. Custom projections have other tables than
	// account_balance, without balances, and Custom gets the applied events. An empty name means
	// account_balance.
	Projection string
	Custom     accountdb.CustomWriter
	Group      *Group         // combines small reads and writes of several partitions; may be nil
	Versions   *VersionReader // finds many duplicates at once; without it, accounts are looked up
}

// Balance is account_balance or an ordered custom projection, for one partition. It holds accounts
// in memory, reads them from the database and writes the changed ones. A Balance is not safe for
// concurrent use.
type Balance struct {
	cfg       Config
	partition readmodel.Partition
	position  projection.Position
	fold      *accounts.Fold
	changes   *accounts.Changes // gathered from fold; nil until they are needed
	breaker   *projection.Breaker
	skipped   []projection.SkippedEvent // read since the last flush
	loaded    bool                      // accounts were read after the last read of the decisions
	indexed   uint64                    // when the query for the last used index began, on the version reader's clock
	failed    bool                      // the last write failed, so the next one is not grouped
	claimed   uint64                    // time of the claim on the version reader's clock
	few       bool                      // few records are folded, so accounts are read together with other partitions
}

// New returns the projection of one partition. Call Claim first.
func New(cfg Config, p readmodel.Partition) *Balance {
	p.Projection = cmp.Or(cfg.Projection, readmodel.BalanceName)
	b := &Balance{cfg: cfg, partition: p}
	b.fold = accounts.NewFold(accounts.Options{
		FirstVersion: cfg.FirstVersion, ParkLimit: cfg.ParkLimit, ParkBytes: cfg.ParkBytes, CacheBytes: cfg.CacheBytes(), Custom: cfg.Custom != nil,
		Duplicates: cfg.Decisions != nil,
	}, balanceStore{accountdb.Store{DB: b.db(), Formats: cfg.Formats, FirstVersion: cfg.FirstVersion}, b})
	return b
}

func (b *Balance) db() accountdb.DB {
	return accountdb.Of(b.cfg.Pool, b.partition.Projection)
}

// balanceStore is the Store of a partition's fold.
type balanceStore struct {
	accountdb.Store
	balance *Balance
}

// Versions implements accounts.Store.
func (s balanceStore) Versions(ctx context.Context) *accounts.VersionIndex {
	index, began := s.balance.cfg.Versions.since(ctx, s.balance.claimed)
	if began != s.balance.indexed {
		s.balance.loaded, s.balance.indexed = true, began
	}
	return index
}

// Accounts implements accounts.Store.
func (s balanceStore) Accounts(ctx context.Context, ids []string, found func(*projection.StoredAccount)) error {
	s.balance.loaded = true
	if b := s.balance; b.few && b.cfg.Group != nil {
		return b.cfg.Group.read(ctx, s.Store, ids, found)
	}
	return s.Store.Accounts(ctx, ids, found)
}

// Claim implements Projection. It also reads accounts whose parked events can be applied, because a
// previous owner may have been interrupted before it applied them.
func (b *Balance) Claim(ctx context.Context, c projection.Claim) (projection.Position, error) {
	b.cfg.Versions.claiming()
	pos, err := readmodel.ClaimPosition(ctx, b.cfg.Pool, b.partition, c)
	b.claimed = b.cfg.Versions.claimed()
	if err != nil {
		return pos, err
	}
	if err := b.cfg.Decisions.Read(ctx); err != nil {
		return pos, err
	}
	b.position = pos
	b.fold.Reset()
	b.changes = nil
	b.skipped = nil
	b.breaker = projection.NewBreaker(b.cfg.Breaker, b.partition.Number, &pos)
	b.fold.CountedBy(b.breaker)
	tables := b.db().Tables
	var healable []string
	batch := &pgx.Batch{}
	batch.Queue(tables.Query("clear_passed"), b.partition.Topic, b.partition.Number)
	batch.Queue(tables.Query("load_healable"), b.partition.Topic, b.partition.Number, b.cfg.FirstVersion-1).Query(func(rows pgx.Rows) (err error) {
		healable, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err := b.cfg.Pool.SendBatch(ctx, batch).Close(); err != nil {
		return pos, fmt.Errorf("clear parked events and find accounts to heal: %w", err)
	}
	b.few = false
	return pos, b.fold.Read(ctx, healable)
}

// Fold implements Projection.
func (b *Balance) Fold(ctx context.Context, records []projection.DecodedRecord, limit int) (int, error) {
	b.changes = nil
	b.few = 0 < len(records) && len(records) <= groupRecords
	if len(records) == 0 {
		return 0, errors.Join(b.noteSkipped(ctx), b.fold.Heal(ctx, limit))
	}
	b.position.MarkReprocessed(records)
	b.cfg.Decisions.MarkDiscarded(records)
	n, err := b.fold.Apply(ctx, records, limit)
	if err != nil {
		return n, err
	}
	return n, b.noteSkipped(ctx)
}

// noteSkipped finds the new duplicates whose versions an operator has skipped. A skip is committed
// before the fold can read the account with the skipped version. The decisions of operators are
// therefore only read again if accounts were read since the decisions were last read.
func (b *Balance) noteSkipped(ctx context.Context) error {
	duplicates := b.fold.Duplicates()
	if len(duplicates) == 0 {
		return nil
	}
	if b.loaded {
		if err := b.cfg.Decisions.Read(ctx); err != nil {
			return err
		}
		b.loaded = false
	}
	b.skipped = append(b.skipped, b.cfg.Decisions.Skipped(duplicates)...)
	b.fold.ForgetDuplicates()
	return nil
}

// cacheBytes is the memory limit of the fold. The limit is halved as long as a version index is in
// memory.
func (b *Balance) cacheBytes() int {
	if b.cfg.Versions.held() {
		return b.cfg.CacheBytes() / 2
	}
	return b.cfg.CacheBytes()
}

// Pending implements Projection.
func (b *Balance) Pending() projection.Pending { return b.fold.Pending() }

// DeadLetters implements Projection.
func (b *Balance) DeadLetters() []projection.DeadLetter { return b.fold.DeadLetters() }

// gathered returns the pending changes. The changes are gathered once per flush, even if the flush
// is tried several times.
func (b *Balance) gathered() *accounts.Changes {
	if b.changes == nil {
		b.changes = b.fold.Gather()
	}
	return b.changes
}

// Refuse implements Projection.
func (b *Balance) Refuse(reason string) bool { return b.fold.Refuse(reason) }

// Verify implements Projection. It checks the position first. If this writer still owns the
// position, the accounts that were read since the claim come from the same database as the claim.
func (b *Balance) Verify(ctx context.Context) error {
	if err := readmodel.VerifyPosition(ctx, b.cfg.Pool, b.partition, b.position); err != nil {
		return err
	}
	changes := b.gathered()
	return b.stale(accountdb.VerifyVersions(ctx, b.db(), changes.DecidedOn, changes.Assumed), changes)
}

// stale returns err. If it means that accounts may have been wrongly assumed to be new, stale makes
// the fold look up all unknown accounts in the next flushes.
func (b *Balance) stale(err error, changes *accounts.Changes) error {
	if errors.Is(err, projection.ErrStale) && len(changes.Assumed) > 0 {
		b.fold.AssumedWrongly()
	}
	return err
}

// Flush implements Projection.
func (b *Balance) Flush(ctx context.Context, next projection.NextOffset) (projection.Flushed, error) {
	changes := b.gathered()
	pace.Expect(ctx, changes.NumRows())
	flushed := changes.Flushed()
	flushed.Skipped = b.skipped
	moved := b.position.Moved(next)
	moved.Breaker = b.breaker.State(b.position.Breaker)
	grouped := !b.failed && ctx.Err() == nil &&
		b.cfg.Group.write(&member{move: readmodel.Move{Partition: b.partition, From: b.position, To: moved}, changes: changes})
	if !grouped {
		err := write(ctx, b.cfg.Pool, b.partition, b.position, moved, changes, b.cfg.Custom, !b.failed)
		if b.failed = err != nil; b.failed {
			return flushed, b.stale(err, changes)
		}
	}
	b.position = moved
	if b.cfg.Changed != nil {
		b.cfg.Changed(written(changes))
	}
	b.fold.SetCacheBytes(b.cacheBytes())
	b.fold.Flushed()
	b.changes, b.skipped = nil, nil
	return flushed, nil
}

// written returns the accounts whose row was written or which have new parked events. An account
// may occur twice.
func written(c *accounts.Changes) iter.Seq[string] {
	return func(yield func(string) bool) {
		for chunk := range c.RowChunks(func() int { return groupRows }) {
			for i := range chunk {
				if !yield(chunk[i].AccountID) {
					return
				}
			}
		}
		for _, parked := range c.Parks {
			if !yield(parked.Decoded.Event.AccountID) {
				return
			}
		}
	}
}
