package citus

import (
	"context"
	"encoding/binary"
	"iter"
	"math/bits"
	"slices"

	"github.com/jackc/pgx/v5"

	"projector/sql"
)

// Shards holds the lowest hash of each Citus shard, ascending. Without Citus it is empty. If all
// accounts of a statement are in one shard, Citus sends the statement to that shard only, and locks
// no other shards. Otherwise Citus sends the statement to each of these shards, with all arguments.
// So if shards were split after they were read, statements take longer, but their results stay
// correct.
type Shards []int32

func loadShards(ctx context.Context, conn *pgx.Conn) (Shards, error) {
	rows, _ := conn.Query(ctx, sql.Query("citus_shards"), distributed[0])
	return pgx.CollectRows(rows, pgx.RowTo[int32])
}

// ShardsOn returns the shards that were read when the connection was made. It returns none without
// Citus.
func ShardsOn(conn *pgx.Conn) Shards {
	s, _ := conn.PgConn().CustomData()[OnCitus].(Shards)
	return s
}

func (s Shards) shardOf(account string) int {
	n, lowest := slices.BinarySearch(s, hashText(account))
	if lowest {
		return n
	}
	return max(0, n-1)
}

// ByShard splits entries by the shard of their account. The order of the entries stays the same.
func ByShard[T any](s Shards, entries []T, account func(*T) string) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		if len(s) < 2 {
			yield(entries)
			return
		}
		parts := make([][]T, len(s))
		for i := range entries {
			n := s.shardOf(account(&entries[i]))
			parts[n] = append(parts[n], entries[i])
		}
		for _, part := range parts {
			if len(part) > 0 && !yield(part) {
				return
			}
		}
	}
}

// hashText is PostgreSQL's function hashtext, which Citus uses to find the shard of a text. It is
// Bob Jenkins' lookup3.
func hashText(s string) int32 {
	a := uint32(0x9e3779b9) + uint32(len(s)) + 3923095 //nolint:gosec // G115: as PostgreSQL does
	b, c := a, a
	data := []byte(s)
	for ; len(data) >= 12; data = data[12:] {
		a += binary.LittleEndian.Uint32(data)
		b += binary.LittleEndian.Uint32(data[4:])
		c += binary.LittleEndian.Uint32(data[8:])
		a, b, c = mixed(a, b, c)
	}
	// The lowest byte of c stays 0, because lookup3 reserves it for the length.
	var rest [12]byte
	copy(rest[:8], data)
	if len(data) > 8 {
		copy(rest[9:], data[8:])
	}
	a += binary.LittleEndian.Uint32(rest[:])
	b += binary.LittleEndian.Uint32(rest[4:])
	c += binary.LittleEndian.Uint32(rest[8:])
	return finished(a, b, c)
}

func mixed(a, b, c uint32) (uint32, uint32, uint32) {
	a = (a - c) ^ bits.RotateLeft32(c, 4)
	c += b
	b = (b - a) ^ bits.RotateLeft32(a, 6)
	a += c
	c = (c - b) ^ bits.RotateLeft32(b, 8)
	b += a
	a = (a - c) ^ bits.RotateLeft32(c, 16)
	c += b
	b = (b - a) ^ bits.RotateLeft32(a, 19)
	a += c
	c = (c - b) ^ bits.RotateLeft32(b, 4)
	b += a
	return a, b, c
}

func finished(a, b, c uint32) int32 {
	c = (c ^ b) - bits.RotateLeft32(b, 14)
	a = (a ^ c) - bits.RotateLeft32(c, 11)
	b = (b ^ a) - bits.RotateLeft32(a, 25)
	c = (c ^ b) - bits.RotateLeft32(b, 16)
	a = (a ^ c) - bits.RotateLeft32(c, 4)
	b = (b ^ a) - bits.RotateLeft32(a, 14)
	c = (c ^ b) - bits.RotateLeft32(b, 24)
	return int32(c) //nolint:gosec // G115: the same bits
}
