package database

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/cli/exit"
	"projector/internal/cli/output"
	"projector/readmodel/citus"
)

// movedAtOnce is a number of bytes. Tables with more bytes in total are moved to the workers of
// Citus only with --citus-move.
const movedAtOnce = 64 << 20

// citus distributes the tables if --citus is given. If the tables are large and --citus-move is not
// given, the method only prints their sizes and returns an error.
func (c *upCmd) citus(ctx context.Context, io *output.Streams, pool *pgxpool.Pool) error {
	if !c.Citus {
		return nil
	}
	tables, err := citus.Load(ctx, pool)
	if err != nil {
		return err
	}
	if tables == nil {
		return exit.Refuse(string(citus.ErrMissing))
	}
	var bytes int64
	for _, t := range tables {
		if t.Shards == 0 {
			bytes += t.Bytes
			io.Notef("to be distributed: %s, about %d rows, %d MiB\n", t.Name, t.Rows, t.Bytes>>20)
		}
	}
	if bytes > movedAtOnce && !c.CitusMove {
		return exit.Refusef("--citus: %d MiB are moved to the workers, and nobody can read or write these tables meanwhile: "+
			"stop the consumers, and type it again with --citus-move", bytes>>20)
	}
	done, err := citus.Distribute(ctx, pool)
	for _, t := range done {
		io.Printf("distributed %s\n", t.Name)
	}
	if err == nil && len(done) == 0 {
		io.Printf("the tables are distributed\n")
	}
	return err
}

// sayDistributed prints which tables are distributed, and which are not yet.
func sayDistributed(ctx context.Context, pool *pgxpool.Pool, std *output.Streams) error {
	tables, err := citus.Load(ctx, pool)
	var with, without []string
	for _, t := range tables {
		if t.Shards > 0 {
			with = append(with, fmt.Sprintf("%s (%d shards)", t.Name, t.Shards))
		} else {
			without = append(without, t.Name)
		}
	}
	if len(with) > 0 {
		std.Notef("distributed by Citus: %s\n", strings.Join(with, ", "))
	}
	if len(without) > 0 {
		std.Notef("not distributed, though the database has Citus: %s: `projector migrate --citus`\n", strings.Join(without, ", "))
	}
	return err
}
