package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

// ownPostgres returns a PostgreSQL cluster for this test alone, and the URL of a migrated database.
func ownPostgres(t testing.TB) (*devstack.Postgres, string) {
	t.Helper()
	cluster := devtest.Postgres(t)
	url, err := cluster.NewDatabase(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	devtest.Schema(t, url)
	return cluster, url
}

// The method retrying returns a check for await. It succeeds when at least one partition reports
// that it is retrying.
func (w *world) retrying(p *program) func() string {
	return func() string {
		samples := p.metrics()
		for partition := range w.partitions {
			if samples[fmt.Sprintf(`projector_retrying{partition="%d",projection="account_balance",topic=%q}`, partition, w.topic)] == 1 {
				return ""
			}
		}
		return "projector_retrying is 0 for every partition"
	}
}

// fewLines expects that an outage took fewer lines of log than most and one more for each second,
// because an outage takes longer on a slow machine. The argument before is the number of lines when it
// began.
func (w *world) fewLines(p *program, before, most int, began time.Time) {
	w.t.Helper()
	lasted := time.Since(began)
	if lines := len(p.lines()) - before; lines >= most+int(lasted.Seconds()) {
		w.t.Errorf("the outage took %d lines of log in %s", lines, lasted.Round(time.Second))
	}
}

func TestPostgresCrashesInMidStream(t *testing.T) {
	t.Parallel()
	const outage = 10 * time.Second
	cluster, url := ownPostgres(t)
	w := newWorldOn(t, devtest.Broker(t).Addrs(), url, 4)
	w.slowWrites(10 * time.Millisecond)
	total := scaled(20_000)
	records := testbank.Generate(testbank.Options{Seed: seed(t), Records: total, Partitions: w.partitions, Accounts: 400})
	first := w.feed(records[:total*2/3], total/200, 25*time.Millisecond)
	p := w.start()
	await(t, "ready", p.answers("/readyz", 200, ""))
	await(t, "the middle of the stream", w.passed(int64(total/3)))
	before := len(p.lines())
	if err := cluster.Stop(t.Context(), devstack.Immediate); err != nil {
		t.Fatal(err)
	}
	down := time.Now()
	first()
	second := w.feed(records[total*2/3:], total/200, 25*time.Millisecond) // not yet consumed when the outage begins
	awaitWithin(t, soon, "unready while PostgreSQL is down", p.answers("/readyz", 503, "PostgreSQL"))
	awaitWithin(t, soon, "projector_retrying", w.retrying(p))
	if status, body := p.get("/livez"); status != 200 {
		t.Errorf("/livez: %d %s", status, body)
	}
	pause(t.Context(), outage-time.Since(down))
	if err := cluster.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	second()
	w.exact(w.oracle(), exactlyOnce)
	await(t, "ready again", p.answers("/readyz", 200, ""))
	w.fewLines(p, before, 40, down)
	await(t, "projector_retrying is 0 again", func() string {
		if w.retrying(p)() == "" {
			return "still 1"
		}
		return ""
	})
	p.terminate()
	w.atRest()
}
