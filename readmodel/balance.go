package readmodel

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/projection/event"
	"projector/sql"
)

// healPiece is how many parked events are read and applied at a time, at most. A queue
// that is no longer is applied in the transaction that fills the hole before it.
const healPiece = 1000

// healGlance is how many are read first where the next event of the account waits for
// them. Often a hole is followed by the next one, and what is behind that is read in vain.
const healGlance = 8

// healMore is how many are read behind a piece that was all applied.
func healMore(piece int) int { return min(4*piece, healPiece) }

// BalanceConfig is what the account_balance projection needs.
type BalanceConfig struct {
	Pool         *pgxpool.Pool
	Formats      event.Resolver
	FirstVersion int64
	ParkLimit    int64
	CacheBytes   func() int   // what a partition may remember of accounts, as of now
	Group        *Group       // writes small flushes of several partitions together; nil: each alone
	Floors       *FloorReader // knows duplicates in great numbers; nil: each account is looked up
}

// Balance is the account_balance projection of one partition: the pure fold with
// the database behind it. It is not safe for concurrent use.
type Balance struct {
	cfg       BalanceConfig
	partition Partition
	position  projection.Position
	fold      *projection.Fold
	unread    []string
	failed    bool // the last write: the next one must not hold up others

	claimed    uint64 // by the clock of the floors
	redelivery redelivery
}

// NewBalance prepares the projection of one partition; Claim comes first.
func NewBalance(cfg BalanceConfig, p Partition) *Balance {
	p.Projection = BalanceName
	return &Balance{
		cfg:       cfg,
		partition: p,
		fold: projection.NewFold(projection.FoldOptions{
			FirstVersion: cfg.FirstVersion, ParkLimit: cfg.ParkLimit, CacheBytes: cfg.CacheBytes(),
		}),
	}
}

// Claim takes the partition over, forgets all that was learnt or pending, and
// finds the accounts whose healing was interrupted. It answers where to resume; with an
// error, how it has found the row, if it has.
func (b *Balance) Claim(ctx context.Context, c projection.Claim) (projection.Position, error) {
	pos, err := ClaimPosition(ctx, b.cfg.Pool, b.partition, c)
	if err != nil {
		return pos, err
	}
	b.position = pos
	b.fold.Reset()
	b.claimed, b.redelivery = b.cfg.Floors.now(), redelivery{}
	if _, err := b.cfg.Pool.Exec(ctx, sql.Query("clear_passed"), b.partition.Topic, b.partition.Number); err != nil {
		return pos, fmt.Errorf("clear parked events: %w", err)
	}
	rows, err := b.cfg.Pool.Query(ctx, sql.Query("load_healable"), b.partition.Topic, b.partition.Number)
	if err != nil {
		return pos, fmt.Errorf("find accounts to heal: %w", err)
	}
	healable, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return pos, fmt.Errorf("find accounts to heal: %w", err)
	}
	return pos, b.load(ctx, healable)
}

// Judge folds records in order until all are judged or limit events are pending,
// and answers how many it judged. After an error, go on with the rest.
func (b *Balance) Judge(ctx context.Context, records []projection.Judgeable, limit int) (int, error) {
	room := limit - b.fold.Pending().Events
	records = records[:min(len(records), max(1, room))]
	var floors *projection.Floors
	if b.redelivery.in {
		floors = b.cfg.Floors.since(ctx, b.claimed)
	}
	b.fold.Find(records, floors)
	if err := b.loadUnread(ctx); err != nil {
		return 0, err
	}
	before := b.fold.Duplicates()
	n, err := b.judgeFound(ctx, records, limit)
	b.redelivery.judged(n, b.fold.Duplicates()-before, len(b.unread))
	return n, err
}

// judgeFound is Judge behind the looking up.
func (b *Balance) judgeFound(ctx context.Context, records []projection.Judgeable, limit int) (int, error) {
	for i := range records {
		r := &records[i]
		before := b.position.Reprocessed(r.Record.Offset, r.Record.LeaderEpoch)
		if !b.fold.JudgeFound(i, r, before) {
			ready, err := b.healFirst(ctx, r.Decoded.Event.AccountID, limit)
			if err != nil || !ready {
				return i, err
			}
			b.fold.JudgeFound(i, r, before)
		}
		if limit > 1 && b.fold.FoundHealing(i) {
			if err := b.healShortQueue(ctx, r.Decoded.Event.AccountID); err != nil {
				return i + 1, err
			}
		}
		if b.fold.Pending().Events >= limit {
			return i + 1, nil
		}
	}
	return len(records), nil
}

// cacheBytes is what the fold may remember of accounts: floors take half.
func (b *Balance) cacheBytes() int {
	if b.cfg.Floors.held() {
		return b.cfg.CacheBytes() / 2
	}
	return b.cfg.CacheBytes()
}

// healFirst heals an account whose record comes next; false when the limit of
// pending events is reached before that.
func (b *Balance) healFirst(ctx context.Context, id string, limit int) (bool, error) {
	for piece := healGlance; b.fold.IsHealing(id); piece = healMore(piece) {
		room := limit - b.fold.Pending().Events
		if room <= 0 {
			return false, nil
		}
		if err := b.heal(ctx, id, min(room, piece)); err != nil {
			return false, err
		}
	}
	return true, nil
}

// healShortQueue applies what waits behind a hole that was filled just now, one piece of
// it at most: readers see the events of a short queue together with the one they waited for.
func (b *Balance) healShortQueue(ctx context.Context, id string) error {
	room := healPiece
	for piece := healGlance; room > 0 && b.fold.IsHealing(id); piece = healMore(piece) {
		before := b.fold.Pending().Events
		if err := b.heal(ctx, id, min(room, piece)); err != nil {
			return err
		}
		room -= b.fold.Pending().Events - before
	}
	return nil
}

// Heal applies a bounded piece of what waits in the database for accounts whose
// hole has been filled, and reports whether more of it waits.
func (b *Balance) Heal(ctx context.Context, limit int) (bool, error) {
	for _, id := range b.fold.Healing() {
		room := min(limit, healPiece) - b.fold.Pending().Events
		if room <= 0 {
			break
		}
		if err := b.heal(ctx, id, room); err != nil {
			return true, err
		}
	}
	return len(b.fold.Healing()) > 0, nil
}

func (b *Balance) heal(ctx context.Context, id string, room int) error {
	parked, more, err := loadParked(ctx, b.cfg.Pool, b.cfg.Formats, id, b.fold.Version(id), min(room, healPiece))
	if err != nil {
		return err
	}
	b.fold.Heal(id, parked, more)
	return nil
}

// loadUnread learns the accounts of the records that are to be judged.
func (b *Balance) loadUnread(ctx context.Context) error {
	b.unread = b.fold.Unread(b.unread[:0])
	if len(b.unread) == 0 {
		return nil
	}
	slices.Sort(b.unread) // neighbours in the index are read together
	err := readAccounts(ctx, b.cfg.Pool, b.unread, b.cfg.FirstVersion, func(a *projection.Account) { b.fold.Learn(*a) })
	if err != nil {
		return err
	}
	b.fold.LearnRest()
	return nil
}

// load learns the given accounts, known to the database or not.
func (b *Balance) load(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	known, err := LoadAccounts(ctx, b.cfg.Pool, ids, b.cfg.FirstVersion)
	if err != nil {
		return err
	}
	for i := range known {
		b.fold.Learn(known[i])
	}
	for _, id := range ids {
		if !b.fold.Knows(id) {
			b.fold.LearnNew(id)
		}
	}
	return nil
}

// Pending tells how much waits to be flushed.
func (b *Balance) Pending() projection.Pending { return b.fold.Pending() }

// Changes is what a flush would publish and write.
func (b *Balance) Changes() *projection.Changes { return b.fold.Changes() }

// Reject makes a record be judged as refused by the database; false when it was
// judged so already.
func (b *Balance) Reject(reason string) bool { return b.fold.Reject(b.fold.Sole(), reason) }

// Verify answers ErrFenced or ErrStale unless the dead letters' verdicts still hold.
// The position comes first: where it is as this writer left it, nothing that was
// read since the claim is of another owner or of a restored database.
func (b *Balance) Verify(ctx context.Context, c *projection.Changes) error {
	if err := verifyPosition(ctx, b.cfg.Pool, b.partition, b.position); err != nil {
		return err
	}
	return Verify(ctx, b.cfg.Pool, c.Bases)
}

// Write makes the changes durable and moves the position to next.
func (b *Balance) Write(ctx context.Context, next projection.NextOffset, c *projection.Changes) error {
	grouped := !b.failed && ctx.Err() == nil &&
		b.cfg.Group.write(&member{partition: b.partition, position: b.position, next: next, changes: c})
	if !grouped {
		err := Write(ctx, b.cfg.Pool, b.partition, b.position, next, c)
		if b.failed = err != nil; b.failed {
			return err
		}
	}
	b.position = b.position.Moved(next)
	b.fold.SetCacheBytes(b.cacheBytes())
	b.fold.Flushed()
	return nil
}
