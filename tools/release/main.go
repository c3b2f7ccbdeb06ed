// Command release builds what a release consists of, into a folder of its own below
// dist/: for each platform an archive with the program, and its bill of materials; and
// the checksums of them all. The same commit, version and Go make the same bytes, on
// whatever machine and whenever: paths are trimmed, no build id is kept, and every time
// is that of the commit. `make release` runs it; CONTRIBUTING.md has the way to a release.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// options are what the release is to be.
type options struct {
	version  string // empty: the tag of the commit
	snapshot bool   // built from whatever stands there, to be looked at and thrown away
	dist     string
}

// run answers the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.version, "version", "", "version such as v1.2.3; default the tag of the commit")
	flags.BoolVar(&o.snapshot, "snapshot", false, "build also from a changed tree, without a tag and without a part in CHANGELOG.md")
	flags.StringVar(&o.dist, "dist", "dist", "folder to write to")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // the flag set has said why
	}
	if err := release(ctx, &o, stdout); err != nil {
		_, _ = fmt.Fprintln(stderr, "release:", err)
		return 1
	}
	return 0
}

// release builds everything beside its final place and moves it there when it is whole.
func release(ctx context.Context, o *options, progress io.Writer) (err error) {
	tree, err := readTree(ctx, ".")
	if err != nil {
		return err
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	version, err := tree.version(o, string(changelog))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.dist, 0o755); err != nil { //nolint:gosec // G301: what is released is for everybody
		return err
	}
	scratch, err := os.MkdirTemp(o.dist, ".building-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	b := build{tree: tree, version: version, bin: filepath.Join(scratch, "bin"), out: filepath.Join(scratch, "out"), progress: progress}
	if err := b.all(ctx); err != nil {
		return err
	}
	final := filepath.Join(o.dist, version)
	if err := os.RemoveAll(final); err != nil {
		return err
	}
	if err := os.Rename(b.out, final); err != nil {
		return err
	}
	_, err = fmt.Fprintf(progress, "released into %s\n", final)
	return err
}
