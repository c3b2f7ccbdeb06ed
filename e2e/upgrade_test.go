//go:build upgrade

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"projector/e2e/process"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// lastRelease is the commit that the tests upgrade from. It is a commit because there is no release
// yet.
const lastRelease = "34f8c717af2538585ab43e165f897776fe26b0f6"

// released builds the last release once for all runs. PROJECTOR_UPGRADE_RELEASE names another
// commit or tag.
var released = sync.OnceValues(func() (string, error) {
	commit := lastRelease
	if other := os.Getenv("PROJECTOR_UPGRADE_RELEASE"); other != "" {
		commit = other
	}
	id, err := exec.Command("git", "rev-parse", "--verify", commit+"^{commit}").Output()
	if err != nil {
		return "", fmt.Errorf("commit %s is not in this repository: fetch it (git fetch --unshallow --tags), or name another in PROJECTOR_UPGRADE_RELEASE: %w", commit, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "projector", "release-"+string(id[:12]), "projector")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, buildCommit(commit, path)
})

// buildCommit builds the program of a commit from an archive of its files.
func buildCommit(commit, path string) error {
	folder, err := os.MkdirTemp("", "projector-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	source, made := filepath.Join(folder, "source"), filepath.Join(folder, "projector")
	script := `set -e; mkdir -p "$2" "$(dirname "$4")"; git -C "$(git rev-parse --show-toplevel)" archive "$1" | tar -x -C "$2"
cd "$2"; go build -buildvcs=false -trimpath -o "$3" ./cmd/projector; cp "$3" "$4.partial"; mv "$4.partial" "$4"`
	if out, err := exec.CommandContext(context.Background(), "sh", "-c", script, "sh", commit, source, made, path).CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("build %s: %w", commit, err), errors.New(string(out)))
	}
	return nil
}

// upgrade is a test environment in which the last release and this program run together.
type upgrade struct {
	*world
	old   process.Binary
	flags []string
	limit int64 // number of records
}

// newUpgrade returns a test environment whose schema was created by the last release.
func newUpgrade(t *testing.T, records []testbank.Record, flags ...string) *upgrade {
	t.Helper()
	database := devtest.Postgres(t).URL()
	if err := process.Migrate(released)(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	u := &upgrade{world: newWorldOn(t, devtest.Broker(t).Addrs(), database, 4), flags: flags, limit: int64(len(records))}
	u.old = process.Binary{Path: must(released())(t), Secrets: []string{password(t, database), testbank.Marker}}
	return u
}

// startOld starts an instance of the last release and waits until it has partitions.
func (u *upgrade) startOld() *program {
	u.t.Helper()
	p := &program{u.t, u.old.Launch(u.t, []string{"DATABASE_URL=" + u.url, "KAFKA_BROKERS=" + u.addrs[0]}, u.world.flags(u.flags...)...)}
	await(u.t, "the last release has partitions", p.logged("partitions assigned"))
	return p
}

// startNew starts an instance of this program and waits until it has partitions.
func (u *upgrade) startNew() *program {
	u.t.Helper()
	p := u.start(u.flags...)
	await(u.t, "this program has partitions", p.logged("partitions assigned"))
	return p
}

// part waits until the given percentage of the stream is consumed.
func (u *upgrade) part(percent int64) {
	u.t.Helper()
	await(u.t, fmt.Sprintf("%d percent consumed", percent), u.passed(u.limit*percent/100))
}

// roll migrates the schema and replaces the instances one after the other while events arrive. One
// step of the upgrade is reversed. In the end only instances of this program run.
func (u *upgrade) roll() *program {
	t := u.t
	t.Helper()
	first, second := u.startOld(), u.startOld()
	u.part(10)
	if err := process.Migrate(binary)(t.Context(), u.url); err != nil {
		t.Fatal(err)
	}
	u.part(20)
	first.kill() // a restarted pod of the old version uses the new schema
	u.evict()
	first = u.startOld()
	await(t, "the last release is ready on the new schema", first.answers("/readyz", 200, ""))
	u.part(30)
	third := u.startNew()
	u.part(45)
	first.terminate()
	u.part(55)
	third.terminate() // this step is reversed: the last release runs again
	back := u.startOld()
	u.part(65)
	last := u.startNew()
	second.kill()
	u.evict()
	u.part(75)
	back.terminate()
	return last
}

// command runs a command of this program.
func (u *upgrade) command(args ...string) {
	u.t.Helper()
	env := []string{"DATABASE_URL=" + u.url, "KAFKA_BROKERS=" + u.addrs[0]}
	if status, _, stderr := once(u.t, env, args...); status != 0 {
		u.t.Fatalf("%v: exit %d: %s", args, status, stderr)
	}
}

// repair replays the dead letters that the last release wrote.
func (u *upgrade) repair(more ...string) {
	u.t.Helper()
	u.command(append([]string{"dlq", "replay", "--topic=" + u.topic, "--group=" + u.group, "--ignore-event-types=" + testbank.IgnoredType, "--yes", "--reason=upgraded"}, more...)...)
}

// The method ended expects that a rebuild by this program finds no difference and that the audit
// trail is intact.
func (u *upgrade) ended(last *program) {
	u.t.Helper()
	if r := u.rebuild(u.flags...); r.Different != 0 || r.LeftAlone != 0 || r.Checked == 0 {
		u.t.Errorf("rebuild: %+v", r)
	}
	u.command("audit", "verify")
	last.terminate()
	u.atRest()
}

// TestRollingUpgrade upgrades a running group from the last release while records arrive. The
// schema is migrated while the old instances consume. Then old and new instances share the
// partitions, and one step is reversed. Gaps from before the upgrade must be closed after it.
func TestRollingUpgrade(t *testing.T) {
	const parkLimit = 200 // more than the events that the generator parks for an account
	n := seed(t)
	t.Run("account_balance", func(t *testing.T) {
		t.Parallel()
		records := testbank.Generate(testbank.Options{Seed: n, Records: scaled(16_000), Partitions: 4, Accounts: 300})
		u := newUpgrade(t, records, fmt.Sprintf("--park-limit=%d", parkLimit))
		u.audit()
		u.slowWrites(5 * time.Millisecond)
		u.append(append(credits("beyond", 2, parkLimit+10), credits("gap", 2, 3)...)...)
		finish := u.feed(records, len(records)/300, 50*time.Millisecond)
		last := u.roll()
		await(t, "the gaps of the last release wait", u.counts("SELECT count(*) FROM parked_event WHERE account_id IN ('beyond', 'gap')", parkLimit+2))
		u.append(credit("beyond", 1), credit("gap", 1))
		finish()
		await(t, "every record consumed", u.arrived)
		await(t, "the gap is closed", u.reads("gap", "3 0.03 false"))
		await(t, "dead letters wait", u.reads("beyond", fmt.Sprintf("%d 2.01 true %d", parkLimit+1, parkLimit+2)))
		u.repair("--account=beyond")
		// The last release parks an event that cannot be applied and then drops a valid event of
		// the same version. A rebuild parks the valid event, as this program does.
		if r := u.rebuild(append([]string{"--yes"}, u.flags...)...); r.LeftAlone != 0 {
			t.Errorf("rebuild: %+v", r)
		} else {
			t.Logf("%d of %d accounts had something else parked", r.Different, r.Checked)
		}
		u.exact(u.oracle(), repeated)
		u.ended(last)
		if n := u.audited(); n > 0 {
			t.Errorf("%d writes did not raise the version", n)
		}
	})
	t.Run("account_statement", func(t *testing.T) {
		t.Parallel()
		records := testbank.Generate(testbank.Options{Seed: n, Records: scaled(16_000), Partitions: 4, Accounts: 300, Clean: true, Ranges: true})
		statement := books[0]
		u := newUpgrade(t, records, "--projection="+statement.projection)
		u.slowWrites(5 * time.Millisecond)
		u.exec("ALTER TABLE account_statement ADD CONSTRAINT old CHECK (account_id <> 'refused')")
		u.append(credits("refused", 1, 3)...)
		finish := u.feed(records, len(records)/300, 50*time.Millisecond)
		last := u.roll()
		finish()
		await(t, "every record consumed", u.arrived)
		u.exec("ALTER TABLE account_statement DROP CONSTRAINT old")
		u.repair("--projection=" + statement.projection)
		await(t, "the table is the oracle's", u.differs(statement, u.read(u.topic)))
		u.ended(last)
	})
}
