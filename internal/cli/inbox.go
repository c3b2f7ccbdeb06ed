package cli

import (
	"context"
	"fmt"
	"time"

	"projector/readmodel/inbox"
)

// inboxCmd are the commands about the markers of messages taken in.
type inboxCmd struct {
	Prune inboxPruneCmd `cmd:"" help:"Delete markers that are older than the retention. A running projector does so by itself."`
}

type inboxPruneCmd struct {
	Retention time.Duration `env:"INBOX_RETENTION" default:"168h" placeholder:"DURATION" help:"Delete markers older than this (default 168h)."`
	databaseFlags
	outputFlags
}

// pruneDocument is what a pruning did, in JSON.
type pruneDocument struct {
	Deleted int64 `json:"deleted"`
}

// Run prunes the inboxes of all projections.
func (c *inboxPruneCmd) Run(ctx context.Context, std *streams) error {
	if err := checkRetention("--retention", c.Retention); err != nil {
		return err
	}
	pool, err := openReadModel(ctx, &c.databaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	var done pruneDocument
	shown := newProgress(std.err, "deleted")
	err = inbox.PruneAll(ctx, pool, c.Retention, func(n int64) {
		done.Deleted += n
		shown.update(done.Deleted, 0)
	})
	shown.done()
	if err != nil {
		return err
	}
	if c.json() {
		return printJSON(std.out, done)
	}
	_, err = fmt.Fprintf(std.out, "deleted %d markers\n", done.Deleted)
	return err
}

func checkRetention(flag string, d time.Duration) error {
	if d <= 0 {
		return usagef("%s (INBOX_RETENTION): must be more than 0", flag)
	}
	return nil
}
