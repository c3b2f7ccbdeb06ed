// Command release builds a release into a folder below dist/. The release has an archive and a bill
// of materials for each platform, the image of the Linux platforms as an OCI layout, and the
// release notes. It also has the checksums of these files. The checksums are signed if there is a
// key. The same commit, version and Go release give the same bytes on every machine. For this,
// paths are trimmed, no build id is stored, and every time is the time of the commit. `make
// release` runs it. CONTRIBUTING.md says how to release.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

type options struct {
	version  string // if empty, the tag of the commit is used
	snapshot bool   // build the current tree, with or without a tag
	dist     string
	quick    bool // a snapshot without the profile, only for the platforms that CI builds anyway
	notice   bool // only write NOTICE
}

// run returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.version, "version", "", "version such as v1.2.3; default the tag of the commit")
	flags.BoolVar(&o.snapshot, "snapshot", false, "build also from a changed tree, without a tag and without a part in CHANGELOG.md")
	flags.StringVar(&o.dist, "dist", "dist", "folder to write to")
	flags.BoolVar(&o.quick, "quick", false, "with -snapshot: only for this platform and macOS, and not optimized by a profile, so seconds instead of minutes")
	flags.BoolVar(&o.notice, "notice", false, "only write NOTICE, the licences of what the program contains")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // the flag set has printed the reason
	}
	if o.quick && !o.snapshot {
		_, _ = fmt.Fprintln(stderr, "release: -quick is only for a snapshot: add -snapshot, or leave it out")
		return 2
	}
	do := release
	if o.notice {
		do = writeNotice
	}
	if err := do(ctx, &o, stdout); err != nil {
		_, _ = fmt.Fprintln(stderr, "release:", err)
		return 1
	}
	return 0
}

// writeNotice writes NOTICE, which is committed.
func writeNotice(ctx context.Context, _ *options, progress io.Writer) error {
	works, err := contained(ctx, ".", releaseTags)
	if err != nil {
		return err
	}
	if err := publish("NOTICE", notice(works)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(progress, "NOTICE names %d works\n", len(works))
	return err
}

// release builds all files in a temporary folder and moves this folder to its final place when it
// is complete.
func release(ctx context.Context, o *options, progress io.Writer) (err error) {
	tree, err := readTree(ctx, ".")
	if err != nil {
		return err
	}
	changelog, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	version, news, err := tree.version(o, string(changelog))
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
	b := build{tree: tree, version: version, notes: news, profile: profile, platforms: platforms, bin: filepath.Join(scratch, "bin"), out: filepath.Join(scratch, "out"), progress: progress}
	if o.quick {
		b.profile, b.platforms = "off", []platform{{runtime.GOOS, runtime.GOARCH}, {"darwin", "arm64"}}
	}
	if err := b.all(ctx); err != nil {
		return err
	}
	final := filepath.Join(o.dist, version)
	if err := os.RemoveAll(final); err != nil { //nolint:gosec // G703: the caller names the folder, and version is a version
		return err
	}
	if err := os.Rename(b.out, final); err != nil { //nolint:gosec // G703: the same
		return err
	}
	_, err = fmt.Fprintf(progress, "released into %s\n", final)
	return err
}

// tree is the git checkout that is released.
type tree struct {
	commit  string    // full commit id
	at      time.Time // time of the commit, which every file of the release has
	tags    []string  // tags of the commit that are versions
	changed int       // number of files that differ from the commit, including new ones
}

// semantic matches a version as defined by https://semver.org, with the prefix v that Go and git
// use.
var semantic = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

func readTree(ctx context.Context, folder string) (tree, error) {
	var (
		t     tree
		wrong error
	)
	git := func(args ...string) string {
		out, err := output(ctx, folder, nil, "git", args...)
		wrong = errors.Join(wrong, err)
		return strings.TrimSpace(out)
	}
	t.commit = git("rev-parse", "HEAD")
	seconds := git("log", "-1", "--format=%ct")
	for tag := range strings.Lines(git("tag", "--points-at", "HEAD")) {
		if tag = strings.TrimSpace(tag); semantic.MatchString(tag) {
			t.tags = append(t.tags, tag)
		}
	}
	for range strings.Lines(git("status", "--porcelain")) {
		t.changed++
	}
	if wrong != nil {
		return t, wrong
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return t, fmt.Errorf("git names no time of the commit: %w", err)
	}
	t.at = time.Unix(unix, 0).UTC()
	return t, nil
}

// version returns the version to release and its notes. It returns an error if a release is not
// allowed.
func (t *tree) version(o *options, changelog string) (version, news string, err error) {
	version = o.version
	switch {
	case t.changed > 0 && !o.snapshot:
		return "", "", fmt.Errorf("files that are not as they were committed: %d; commit them, or build a snapshot (make release ARGS=-snapshot)", t.changed)
	case version == "" && len(t.tags) == 1:
		version = t.tags[0]
	case version == "" && len(t.tags) > 1:
		return "", "", fmt.Errorf("the commit has several tags, %s: choose one (make release ARGS=-version=%s)", strings.Join(t.tags, ", "), t.tags[0])
	case version == "" && o.snapshot:
		version = "v0.0.0-snapshot." + t.commit[:12]
	case version == "":
		return "", "", errors.New("the commit has no tag such as v1.2.3: tag it, name a version (make release ARGS=-version=v1.2.3), " +
			"or build a snapshot (make release ARGS=-snapshot)")
	}
	if !semantic.MatchString(version) {
		return "", "", fmt.Errorf("%q is no version such as v1.2.3 or v1.2.3-rc.1", version)
	}
	news, err = notes(changelog, version[1:])
	if err != nil && o.snapshot {
		news, err = notes(changelog, "Unreleased")
	}
	return version, news, err
}

// output runs a program and returns its output. Its error contains the program's error output.
func output(ctx context.Context, folder string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // G204: its callers name git, go and what they built
	cmd.Dir = folder
	cmd.Env = append(cmd.Environ(), env...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, complaint.String())
	}
	return string(out), nil
}
