//go:build failpoints

package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"projector/e2e/process"
	"projector/internal/failpoint"
)

// failing builds the program with its failpoints.
var failing = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), "projector-with-failpoints")
	return path, process.Build(context.Background(), path, "-tags=failpoints")
})

// TestARebuildEndsAtEveryStep kills or freezes a rebuild after each of its steps. Consumers must
// continue within 30 s. A long transaction, such as a backup, that began before the rebuild must
// see the old rows. No reader may see a mixture of old and new rows. A second rebuild must succeed.
func TestARebuildEndsAtEveryStep(t *testing.T) {
	for _, point := range []string{
		failpoint.RebuildCompared, failpoint.RebuildLocked, failpoint.RebuildRead, failpoint.RebuildChecked, failpoint.RebuildReplaced, failpoint.RebuildSwapped,
	} {
		for _, action := range []string{"kill", "freeze"} {
			t.Run(point+" "+action, func(t *testing.T) {
				t.Parallel()
				aRebuildEndsAt(t, point, action)
			})
		}
	}
}

func aRebuildEndsAt(t *testing.T, point, action string) {
	t.Helper()
	w := newWorld(t, 2)
	for _, account := range []string{"a-1", "a-2", "a-3", "a-4"} {
		w.append(credits(account, 1, 2)...)
	}
	p := w.start()
	await(t, "every record consumed", w.arrived)
	right := w.pictured(t.Context())
	w.exec(`UPDATE account_balance SET balance = balance + 1 WHERE account_id < 'a-3'`)
	w.exec(`DELETE FROM account_balance WHERE account_id = 'a-3'`)
	wrong := w.pictured(t.Context())
	mixed, before := w.watch(right, wrong), w.snapshot()

	struck := filepath.Join(t.TempDir(), "struck")
	program := process.Binary{Path: must(failing())(t)}.Launch(t, []string{
		"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0], "PROJECTOR_FAILPOINTS=" + point + "=" + action + "@1", "PROJECTOR_FAILPOINTS_LOG=" + struck,
	}, "rebuild", "--topic="+w.topic, "--group="+w.group, "--yes", "--output=json")
	await(t, "the step is done", func() string {
		if text, _ := os.ReadFile(struck); !strings.Contains(string(text), point) {
			return "not yet"
		}
		return ""
	})
	done := point == failpoint.RebuildSwapped
	if action == "freeze" {
		w.dumped(map[bool]string{false: wrong, true: right}[done])
	}
	w.append(credit("b", 1))
	awaitWithin(t, swapHoldsLocks, "the consumer writes", w.reads("b", "1 0.01 false"))
	if action == "freeze" {
		program.Signal(syscall.SIGCONT)
		done = done || point == failpoint.RebuildCompared // a rebuild at this step holds no locks, so it continues
		if status := program.Exit(swapHoldsLocks); (status == 0) != done {
			t.Errorf("exit status %d", status)
		}
		if !done {
			await(t, "a message that names what happened", program.Logged("the swap was given up", "nothing was changed"))
		}
	}
	if now := w.pictured(t.Context()); now != map[bool]string{false: wrong, true: right}[done] {
		t.Errorf("done: %t, and there is\n%s", done, now)
	}
	w.rebuild("--yes")
	if now := w.pictured(t.Context()); now != right {
		t.Errorf("repeated:\n%s\nwant\n%s", now, right)
	}
	if seen := before(); seen != wrong {
		t.Errorf("a snapshot of before sees\n%s", seen)
	}
	for _, seen := range mixed() {
		t.Errorf("a reader has seen\n%s", seen)
	}
	p.terminate()
	w.atRest()
}

// The method dumped expects pg_dump to finish while the rebuild is frozen. The dump must contain
// exactly the accounts in the parameter pictured.
func (w *world) dumped(pictured string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	dump, err := exec.CommandContext(ctx, "pg_dump", "--data-only", "--table=account_balance", w.url).CombinedOutput()
	if err != nil {
		w.t.Fatalf("pg_dump: %v: %s", err, dump)
	}
	var lines int
	for line := range strings.Lines(string(dump)) {
		if !strings.HasPrefix(line, "a-") {
			continue
		}
		lines++
		columns := strings.Split(line, "\t")
		if want := columns[0] + " " + columns[3] + " " + columns[2]; !strings.Contains(pictured, want) {
			w.t.Errorf("pg_dump has %s, and not one of %s", want, pictured)
		}
	}
	if lines != strings.Count(pictured, "a-") {
		w.t.Errorf("pg_dump has %d accounts, and not %s", lines, pictured)
	}
}
