package readmodeltest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/session"
	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/appended"
)

// Observer counts the hits and misses of a projection's recent-event cache, in events.
type Observer struct{ Hits, Misses int }

// Parked implements readmodel.Observer.
func (*Observer) Parked(readmodel.ParkedSummary) {}

// InboxRows implements readmodel.Observer.
func (*Observer) InboxRows(int64) {}

// InboxPruned implements readmodel.Observer.
func (*Observer) InboxPruned(int64) {}

// DedupHit implements readmodel.Observer.
func (o *Observer) DedupHit() { o.Hits++ }

// DedupMiss implements readmodel.Observer.
func (o *Observer) DedupMiss() { o.Misses++ }

// Feeder is a Worker that counts the outcomes.
type Feeder struct {
	*Worker
	Counts   map[string]int // number of records by the name of their outcome
	Reported *Observer

	faults []string // dead letters, as class and event id
}

// NewFeeder returns a feeder for a projection without its recent-event cache, so that PostgreSQL is
// queried.
func NewFeeder(t testing.TB, pool *pgxpool.Pool, kind readmodel.Definition, p readmodel.Partition) *Feeder {
	t.Helper()
	k, ok := kind.(appended.Definition)
	if !ok {
		t.Fatalf("%s is no projection of package appended", kind.Name())
	}
	k.Recent = nil
	return FeederOf(t, pool, k, p)
}

// FeederOf returns a feeder for an unchanged projection.
func FeederOf(t testing.TB, pool *pgxpool.Pool, kind readmodel.Definition, p readmodel.Partition) *Feeder {
	t.Helper()
	reported := &Observer{}
	open := kind.Open(readmodel.RunConfig{
		Pool: pool, FirstVersion: 1, InboxRetention: time.Hour, CacheBytes: func() int { return 1 << 20 }, Observer: reported,
	})
	f := FeederOn(t, open(p))
	f.Reported, f.partition = reported, p.Number
	return f
}

// FeederOn returns a feeder for an opened projection of partition 0. Like every new feeder, it has
// claimed its partition.
func FeederOn(t testing.TB, opened session.Projection) *Feeder {
	t.Helper()
	f := &Feeder{Worker: &Worker{t: t, Format: JSONFormat(t), Projection: opened}, Counts: map[string]int{}}
	f.MustClaim(projection.NoOffset)
	return f
}

// MustClaim claims the partition and continues at the position that the claim returns.
func (f *Feeder) MustClaim(committed int64) {
	f.t.Helper()
	f.Worker.MustClaim("me", committed)
}

// VerifyAndFlush verifies and writes, and counts the outcomes.
func (f *Feeder) VerifyAndFlush() error {
	f.t.Helper()
	changes, err := f.Worker.VerifyAndFlush()
	if err != nil {
		return err
	}
	for _, o := range projection.Outcomes() {
		f.Counts[o.String()] += changes.Outcomes[o]
	}
	for i := range changes.DeadLetters {
		f.faults = append(f.faults, string(changes.DeadLetters[i].Class)+" "+changes.DeadLetters[i].EventID)
	}
	return nil
}

// Feed folds and flushes. If the batch must be decided again, it returns to the durable position,
// as the consumer does.
func (f *Feeder) Feed(values ...string) {
	f.t.Helper()
	for tries := 0; ; tries++ {
		f.MustFold(values...)
		err := f.VerifyAndFlush()
		if err == nil {
			return
		}
		if !errors.Is(err, projection.ErrStale) || tries == 3 {
			f.t.Fatal(err)
		}
		f.MustClaim(projection.NoOffset)
	}
}

// Outcomes returns the counts so far: applied, duplicate, ignored, dead_lettered.
func (f *Feeder) Outcomes() string {
	return fmt.Sprint(f.Counts["applied"], f.Counts["duplicate"], f.Counts["ignored"], f.Counts["dead_lettered"])
}

// Faults returns the class and the event id of each dead letter so far.
func (f *Feeder) Faults() string { return strings.Join(f.faults, ", ") }
