package e2e_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"projector/internal/testbank"
)

// The method passed returns a check for await. It succeeds when the positions add up to at least n
// records.
func (w *world) passed(n int64) func() string {
	return func() string {
		if at := sum(w.positions()); at < n {
			return fmt.Sprintf("at %d, waiting for %d", at, n)
		}
		return ""
	}
}

// TestKilledInMidStream kills the projector several times at random moments.
func TestKilledInMidStream(t *testing.T) {
	t.Parallel()
	const kills = 5
	w := newWorld(t, 4)
	w.slowWrites(10 * time.Millisecond)
	n := seed(t)
	total := scaled(20_000)
	records := testbank.Generate(testbank.Options{Seed: n, Records: total, Partitions: w.partitions, Accounts: 400})
	held := total / 10 // produced after the last kill, so that each kill happens in the middle of the stream
	finish := w.feed(records[:total-held], total/200, 25*time.Millisecond)
	rnd := random(n)
	for i := range kills {
		p := w.start()
		from, to := (total-2*held)*i/kills, (total-2*held)*(i+1)/kills
		target := int64(from + 1 + rnd.IntN(to-from))
		await(t, "the moment to be killed", w.passed(target))
		pause(t.Context(), time.Duration(rnd.IntN(30))*time.Millisecond)
		p.kill()
		at := sum(w.positions())
		t.Logf("killed at %d, with %d in the topic, of %d", at, sum(w.ends(w.topic)), total)
		if at == 0 || at >= int64(total) {
			t.Fatalf("killed at %d of %d: not in mid-stream", at, total)
		}
		w.evict()
	}
	finish()
	w.produce(records[total-held:])
	last := w.start()
	w.exact(w.oracle(), repeated)
	last.terminate()
	w.atRest()
}

// drainWithin is the time that a stop has to write the pending records.
const drainWithin = 5 * time.Second

// TestTerminatedUnderLoad sends SIGTERM to the projector while records arrive. A stop that has written
// all its records repeats no dead letter. On a busy machine, the broker may not acknowledge the last
// dead letters within the time of a stop. The program reports this, and publishes them again later.
func TestTerminatedUnderLoad(t *testing.T) {
	t.Parallel()
	const stops = 3
	w := newWorld(t, 4)
	w.slowWrites(10 * time.Millisecond)
	total := scaled(20_000)
	part := total / (stops + 1)
	records := testbank.Generate(testbank.Options{Seed: seed(t), Records: total, Partitions: w.partitions, Accounts: 400})
	want := exactlyOnce
	for i := range stops {
		finish := w.feed(records[i*part:(i+1)*part], part/50, 25*time.Millisecond)
		p := w.start()
		await(t, "load", w.passed(int64(i*part+part/5)))
		began := time.Now()
		p.terminate()
		if cut := p.linesWith("stopped with records not written: they will be read again"); len(cut) > 0 {
			want = repeated
			if took := time.Since(began); took < drainWithin {
				t.Errorf("the stop gave up after %s: %v", took, cut)
			}
		}
		w.atRest()
		finish()
	}
	last := w.start()
	w.produce(records[stops*part:])
	w.exact(w.oracle(), want)
	last.terminate()
	w.atRest()
}

// TestAClosedTerminal sends SIGHUP twice, as the kernel and the shell of a terminal do. The program
// drains as after SIGTERM.
func TestAClosedTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	p := w.start()
	w.produce(w.shortStream())
	await(t, "load", w.passed(100))
	p.Signal(syscall.SIGHUP)
	p.Signal(syscall.SIGHUP)
	if status := p.exit(soon); status != 0 {
		t.Errorf("exit status %d", status)
	}
	w.atRest()
}
