package balance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/accounts"
	"projector/sql"
)

const (
	// groupRows is the largest write, in rows, that is grouped with others. A larger write has its
	// own transaction.
	groupRows = 256
	// groupRecords is the largest number of records for which accounts are read in a group. A
	// partition that folds more records at once is far from the end of its log.
	groupRecords = 32
	// groupWithin limits how long a blocked member delays the others.
	groupWithin = time.Second
	groupLocks  = "SET LOCAL lock_timeout = '200ms'"
)

// Group puts small reads of several partitions into one query, and small writes into one
// transaction. A Group only saves work, and nothing depends on it. If a query or a transaction
// fails, each member reads or writes alone. If the transaction was committed and the reply was
// lost, the positions have moved. In this case each member's own write fails with ErrFenced, so
// nothing is written twice. See docs/decisions/0011.
type Group struct {
	pool *pgxpool.Pool
	gathering
}

// member is one partition's write.
type member struct {
	move    readmodel.Move
	changes *accounts.Changes
	done    chan error // errAlone or nil
}

// read is one partition's request for accounts.
type read struct {
	ids   []string
	found func(*projection.StoredAccount)
	left  []string   // after an error: the ids that were not found
	done  chan error // nil if all stored accounts were found
}

// NewGroup returns a group for the partitions of a process. The function busy returns how many
// partitions are expected to join. It may be nil.
func NewGroup(pool *pgxpool.Pool, busy func() int) *Group {
	return &Group{pool: pool, gathering: newGathering(busy)}
}

// write writes the changes of m together with the changes of other partitions. It returns false if
// the caller has to write m alone.
func (g *Group) write(m *member) bool {
	c := m.changes
	if g == nil || c.NumRows() > groupRows || len(c.Unwritten)+len(c.Parks)+len(c.Replacing)+len(c.Reclassed)+len(c.Overflows)+len(c.Pruned) > 0 {
		return false
	}
	m.done = make(chan error, 1)
	if members := join(&g.gathering, &g.writes, m); len(members) > 0 {
		err := errAlone
		if len(members) > 1 {
			ctx, cancel := context.WithTimeout(context.Background(), groupWithin)
			err = g.writeTx(ctx, members)
			cancel()
		}
		done(&g.gathering, &g.writes, len(members))
		for _, m := range members {
			m.done <- err
		}
	}
	return <-m.done == nil // until the result arrives, other goroutines read the changes
}

// read reads accounts from the store, together with the accounts of other partitions.
func (g *Group) read(ctx context.Context, store accountdb.Store, ids []string, found func(*projection.StoredAccount)) error {
	r := &read{ids: ids, found: found, left: ids, done: make(chan error, 1)}
	if reads := join(&g.gathering, &g.reads, r); len(reads) > 0 {
		err := errAlone
		if len(reads) > 1 {
			ctx, cancel := context.WithTimeout(context.Background(), groupWithin)
			err = readTogether(ctx, store, reads)
			cancel()
		}
		done(&g.gathering, &g.reads, len(reads))
		for _, r := range reads {
			r.done <- err
		}
	}
	if <-r.done == nil { // until the result arrives, other goroutines call the function found
		return nil
	}
	return store.Accounts(ctx, r.left, found)
}

// readTogether reads the accounts of all members. After an error, the field left of each member has
// the ids that were not found.
func readTogether(ctx context.Context, store accountdb.Store, reads []*read) error {
	wanted := map[string][]*read{}
	for _, r := range reads {
		for _, id := range r.ids {
			wanted[id] = append(wanted[id], r)
		}
	}
	ids := slices.Sorted(maps.Keys(wanted)) // sorted, so that PostgreSQL reads adjacent index entries together
	err := store.Accounts(ctx, ids, func(a *projection.StoredAccount) {
		for _, r := range wanted[a.ID] {
			r.found(a)
		}
		delete(wanted, a.ID)
	})
	if err == nil {
		return nil
	}
	for _, r := range reads {
		r.left = slices.DeleteFunc(slices.Clone(r.ids), func(id string) bool { return wanted[id] == nil })
	}
	return errAlone
}

// errAlone means that a partition has to read or write without the group.
var errAlone = errors.New("not done by the group")

// writeTx writes the changes of all members, or none after an error. As in other transactions,
// positions are locked before accounts, and both in order, so that writers do not deadlock.
func (g *Group) writeTx(ctx context.Context, members []*member) error {
	slices.SortFunc(members, func(a, b *member) int { return cmp.Compare(a.move.Partition.Number, b.move.Partition.Number) })
	var (
		moves   []readmodel.Move
		rows    []accounts.Row
		assumed []string
	)
	for _, m := range members {
		moves = append(moves, m.move)
		assumed = append(assumed, m.changes.Assumed...)
		for chunk := range m.changes.RowChunks(func() int { return groupRows }) {
			rows = append(rows, chunk...)
		}
	}
	slices.SortFunc(rows, func(a, b accounts.Row) int { return strings.Compare(a.AccountID, b.AccountID) })
	err := readmodel.TransactQueued(ctx, g.pool, func(tx *readmodel.Tx) error {
		tx.Queue(groupLocks)
		tx.Move(moves...)
		writer := &accountdb.Tx{Tx: tx, Tables: sql.AccountsOf(readmodel.BalanceName)}
		return accountdb.WriteChanges(ctx, writer, &accounts.Changes{Rows: rows, Assumed: assumed})
	})
	if err != nil {
		return errAlone
	}
	return nil
}

// write writes the changes and moves the partition's position, in one transaction, usually with two
// round trips. ErrFenced and ErrStale mean that nothing was written. After another error, the
// transaction may have been committed. The next claim shows whether it was. The parameter custom
// writes the applied events and may be nil. If copies is set, many new rows are written by COPY,
// which fails if one of the rows exists.
func write(ctx context.Context, pool *pgxpool.Pool, p readmodel.Partition, pos, moved projection.Position, c *accounts.Changes, custom accountdb.CustomWriter, copies bool) error {
	tables := sql.AccountsOf(p.Projection)
	err := readmodel.TransactQueued(ctx, pool, func(tx *readmodel.Tx) error {
		tx.Move(readmodel.Move{Partition: p, From: pos, To: moved})
		err := accountdb.WriteChanges(ctx, &accountdb.Tx{Tx: tx, Tables: tables, Copies: copies}, c)
		if err != nil {
			return err
		}
		return custom.Write(ctx, tx, c.CustomEvents)
	})
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
