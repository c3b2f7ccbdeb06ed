// Command projector calculates account balances in PostgreSQL from account events in Kafka. The
// command line is in package internal/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"projector/internal/cli"
	"projector/internal/cli/flags"
	"projector/internal/pace"
)

// These values are set at build time by `make build` and `make release`.
var (
	version = "dev"
	commit  = "" // the full id, when it is known
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "run" {
		pace.CoarseTimers()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if !signal.Ignored(syscall.SIGHUP) {
		// This is never stopped, because a terminal that closes may send the signal twice. With nohup,
		// the signal stays ignored.
		ctx, _ = signal.NotifyContext(ctx, syscall.SIGHUP)
	}
	os.Exit(cli.Main(ctx, os.Args[1:], os.Stdout, os.Stderr, flags.BuildInfo{Version: version, Commit: commit}))
}
