package readmodel_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/devstack/devtest"
	"projector/projection"
	"projector/readmodel"
	"projector/readmodel/readmodeltest"
)

func TestResumeAtTheLesser(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ stored, committed, start, want int64 }{
		"Kafka behind":                    {100, 50, 0, 50},
		"database restored":               {40, 100, 0, 40},
		"Kafka has forgotten":             {100, projection.NoOffset, 0, 100},
		"both the same":                   {100, 100, 0, 100},
		"reset to the very top":           {100, 0, 0, 0},
		"what Kafka would repeat is gone": {100, 50, 70, 70},
		"what was not applied is gone":    {40, 50, 70, 40},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, w := startWorker(t)
			w.Next = c.stored
			w.MustFlush()
			pos, err := w.Claim(t.Context(), projection.Claim{Owner: "me", TopicID: "id", LogStart: c.start, Committed: c.committed})
			if err != nil {
				t.Fatal(err)
			}
			if pos.Next != c.want || pos.ProcessedUntil != c.stored {
				t.Errorf("resume at %d, processed until %d; want %d and %d", pos.Next, pos.ProcessedUntil, c.want, c.stored)
			}
		})
	}
}

// A group member that was evicted, and does not know this yet, claims with an old offset.
func TestABelatedClaimTakesNothingBack(t *testing.T) {
	w := newWorker(t, openPool(t), partition)
	first := w.MustClaim("first", projection.NoOffset)
	w.Next = 100
	w.MustFlush()
	for name, c := range map[string]projection.Claim{
		"another fence than that of then": {Committed: 50, Fence: first.Fence + 1},
		"no row when asked":               {Committed: 50, Fence: -1},
	} {
		c.Owner, c.TopicID = "belated", "id"
		if _, err := w.Claim(t.Context(), c); !errors.Is(err, projection.ErrFenced) {
			t.Errorf("%s: error %v, want ErrFenced", name, err)
		}
	}
	pos, err := w.Claim(t.Context(), projection.Claim{Owner: "next", TopicID: "id", Committed: 50, Fence: first.Fence})
	if err != nil || pos.Next != 50 {
		t.Errorf("resume at %d, error %v; want 50", pos.Next, err)
	}
}

func TestADatabaseThatHasSeenNothingStartsAtTheFirstRecord(t *testing.T) {
	w := newWorker(t, openPool(t), partition)
	pos, err := w.Claim(t.Context(), projection.Claim{Owner: "me", TopicID: "id", LogStart: 7, Committed: 500})
	if err != nil || pos.Next != 7 {
		t.Errorf("resume at %d, error %v; want 7, whatever Kafka has committed", pos.Next, err)
	}
}

// TestAGroupRunsOneProjection starts two projections in one consumer group at the same time. Kafka
// divides the partitions between them, so that each claims other partitions than the other.
func TestAGroupRunsOneProjection(t *testing.T) {
	pool := openPool(t)
	claim := func(group, name string, partition int32) error {
		p := readmodel.Partition{Projection: name, Group: group, Topic: "events", Number: partition}
		_, err := readmodel.ClaimPosition(t.Context(), pool, p, projection.Claim{Owner: "me", TopicID: "id", Committed: projection.NoOffset})
		return err
	}
	for n := range 20 {
		group := fmt.Sprintf("g%d", n)
		var (
			both    sync.WaitGroup
			refused [2]error
		)
		for i, name := range []string{readmodel.BalanceName, "account_statement"} {
			both.Go(func() { refused[i] = claim(group, name, int32(i)) })
		}
		both.Wait()
		var taken readmodel.Unfit
		if first, second := refused[0], refused[1]; (first == nil) == (second == nil) || !errors.As(errors.Join(first, second), &taken) {
			t.Fatalf("%s: %v and %v; one of them must be refused", group, first, second)
		}
		expect(t, lines(t, pool, "SELECT count(*)::text FROM projector_position WHERE consumer_group = $1", group), "1")
	}
	if err := claim("g0", "daily_turnover", 2); err == nil {
		t.Error("a third projection got a partition of its own")
	}
}

// Any login that may connect can hold an advisory lock for ever. A new group does not wait for such a
// lock.
func TestANewGroupWaitsForNoAdvisoryLock(t *testing.T) {
	pool := openPool(t)
	nobody, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Release()
	if _, err := nobody.Exec(t.Context(), "SET SESSION AUTHORIZATION pg_monitor; SELECT pg_advisory_lock(hashtextextended('projector group g', 0))"); err != nil {
		t.Fatal(err)
	}
	p := readmodel.Partition{Projection: readmodel.BalanceName, Group: "g", Topic: "events"}
	if _, err := readmodel.ClaimPosition(t.Context(), pool, p, projection.Claim{Owner: "me", TopicID: "id", Committed: projection.NoOffset}); err != nil {
		t.Error(err)
	}
	if _, err := nobody.Exec(t.Context(), "SELECT pg_advisory_unlock_all(); RESET SESSION AUTHORIZATION"); err != nil {
		t.Error(err)
	}
}

func TestRecreatedTopicIsRefused(t *testing.T) {
	w := newWorker(t, openPool(t), partition)
	w.MustClaim("me", projection.NoOffset)
	_, err := w.Claim(t.Context(), projection.Claim{Owner: "me", TopicID: "another id"})
	if !errors.Is(err, projection.ErrTopicRecreated) {
		t.Errorf("error %v, want ErrTopicRecreated", err)
	}
}

// `projector position` names the process that has the partition now, also while the partition waits for
// a person.
func TestARefusedClaimStoresItsOwner(t *testing.T) {
	pool := openPool(t)
	p := readmodel.Partition{Projection: readmodel.BalanceName, Group: "g", Topic: "events"}
	claim := func(owner, topicID string) error {
		_, err := readmodel.ClaimPosition(t.Context(), pool, p, projection.Claim{Owner: owner, TopicID: topicID, Committed: projection.NoOffset})
		return err
	}
	if err := claim("first", "id"); err != nil {
		t.Fatal(err)
	}
	stored := lines(t, pool, "SELECT to_jsonb(p) - 'owner' #>> '{}' FROM projector_position AS p")
	if err := claim("second", "another id"); !errors.Is(err, projection.ErrTopicRecreated) {
		t.Errorf("error %v, want ErrTopicRecreated", err)
	}
	expect(t, lines(t, pool, "SELECT owner FROM projector_position"), "second")
	expect(t, lines(t, pool, "SELECT to_jsonb(p) - 'owner' #>> '{}' FROM projector_position AS p"), stored)

	if _, err := pool.Exec(t.Context(), "UPDATE projector_position SET paused_reason = 'by me'"); err != nil {
		t.Fatal(err)
	}
	var stopped *projection.StoppedError
	if err := claim("third", "id"); !errors.As(err, &stopped) || stopped.Reason != "by me" {
		t.Errorf("error %v, want a StoppedError", err)
	}
	expect(t, lines(t, pool, "SELECT owner FROM projector_position"), "third")
}

// A claim with another mapping than the stored one fails, even if the partition has no row yet.
func TestClaimChecksTheMapping(t *testing.T) {
	pool := openPool(t)
	claim := func(m readmodel.Mapping, partition int32) (projection.Position, error) {
		p := readmodel.Partition{Projection: readmodel.BalanceName, Group: "g", Topic: "events", Number: partition, Mapping: m}
		return readmodel.ClaimPosition(t.Context(), pool, p, projection.Claim{Owner: "me", TopicID: "id", Committed: projection.NoOffset})
	}
	stored := "SELECT concat_ws(' ', partition, mapping, fence) FROM projector_position ORDER BY 1"
	first, err := claim(readmodeltest.Mapping("one"), 0)
	if err != nil {
		t.Fatal(err)
	}
	before := lines(t, pool, stored)
	for _, partition := range []int32{0, 1} {
		var stopped *projection.StoppedError
		if _, err := claim(readmodeltest.Mapping("two"), partition); !errors.As(err, &stopped) || !strings.Contains(stopped.Reason, "--accept-changed-mapping") {
			t.Errorf("partition %d: %v", partition, err)
		}
	}
	expect(t, lines(t, pool, stored), before)

	// No record was processed, so another mapping may be stored. The old owner is fenced.
	if err := readmodel.KeepMapping(t.Context(), pool, readmodel.BalanceName, readmodeltest.Mapping("two"), false); err != nil {
		t.Fatal(err)
	}
	p := readmodel.Partition{Group: "g", Topic: "events"}
	if err := readmodel.VerifyPosition(t.Context(), pool, p, first); !errors.Is(err, projection.ErrFenced) {
		t.Errorf("the owner that reads by the mapping before: %v", err)
	}
	if _, err := claim(readmodeltest.Mapping("one"), 0); err == nil {
		t.Error("claimed by the mapping before")
	}
	if _, err := claim(readmodeltest.Mapping("two"), 0); err != nil {
		t.Error(err)
	}
}

// A pause or resume does what its plan showed, or nothing. If another incident has stopped a
// partition since the plan, no partition is resumed.
func TestAStatusThatHasChangedIsNotChanged(t *testing.T) {
	pool := openPool(t)
	of := readmodel.Partition{Projection: readmodel.BalanceName, Group: "g", Topic: "events"}
	logs := []readmodel.PartitionLog{{Partition: 0, TopicID: "id"}, {Partition: 1, TopicID: "id"}}
	stored := "SELECT concat_ws(' ', partition, fence, paused_reason, breaker_reason) FROM projector_position ORDER BY 1"
	apply := func(change projection.StatusChange, meanwhile string) error {
		planned, err := readmodel.PlanStatuses(t.Context(), pool, of, logs, change)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pool.Exec(t.Context(), meanwhile); err != nil {
			t.Fatal(err)
		}
		return readmodel.ChangeStatuses(t.Context(), pool, of, planned, change, "me", "INC-1")
	}
	if err := apply(projection.StatusChange{Pause: "by me"}, "SELECT"); err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{"a storm", "another storm"} {
		var refused *projection.RefusedPositionError
		err := apply(projection.StatusChange{}, "UPDATE projector_position SET breaker_reason = '"+reason+"' WHERE partition = 1")
		if !errors.As(err, &refused) || !strings.Contains(refused.Reason, "partition 1 has changed since the plan: it is breaker_open now ("+reason+")") {
			t.Errorf("%s: error %v", reason, err)
		}
		expect(t, lines(t, pool, stored), "0 1 by me\n1 1 by me "+reason)
	}
	if err := apply(projection.StatusChange{}, "SELECT"); err != nil {
		t.Fatal(err)
	}
	expect(t, lines(t, pool, stored), "0 2\n1 2")
	expect(t, lines(t, pool, "SELECT count(*)::text FROM dlq_action"), "4")
}

// TestAClaimShowsWhetherACommitTookPlace loses the reply to a COMMIT, and then the replies to
// claims. The next claim still shows whether the write took place.
func TestAClaimShowsWhetherACommitTookPlace(t *testing.T) {
	pool, lose := readmodeltest.OpenLosing(t, devtest.Database(t))
	w := newWorker(t, pool, partition)
	pos := w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("a", 1, "1", "EUR"))
	lose.Store(true)
	if _, err := w.VerifyAndFlush(); err == nil {
		t.Fatal("the reply to COMMIT was to be lost")
	}
	want := projection.FencedOffset{Next: w.Next, Fence: pos.Fence}
	for range 2 {
		again, err := w.Claim(t.Context(), projection.Claim{Owner: "me", TopicID: "id", Committed: projection.NoOffset})
		if err == nil || again.Found == nil || *again.Found != want {
			t.Fatalf("the claim found %+v, want %+v; error %v", again.Found, want, err)
		}
		want.Fence = fenceOf(t, pool) // the claim was committed with this fence
	}
	lose.Store(false)
	if again := w.MustClaim("me", projection.NoOffset); *again.Found != want || again.Next != want.Next {
		t.Errorf("the claim found %+v and goes on at %d, want %+v", again.Found, again.Next, want)
	}
}

// In TestAPositionThatWasTakenBackIsNotMoved, a restored backup has the owner's fence and an
// earlier position. The records read since then are not in the backup, so the owner must not move
// its position.
func TestAPositionThatWasTakenBackIsNotMoved(t *testing.T) {
	pool := openPool(t)
	w := newWorker(t, pool, inPartition(0))
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(credit("a", 1, "1", "EUR"), credit("b", 1, "1", "EUR"))
	w.MustFlush()
	if _, err := pool.Exec(t.Context(), "UPDATE projector_position SET next_offset = next_offset - 1"); err != nil {
		t.Fatal(err)
	}
	w.MustFold(credit("a", 2, "2", "EUR"))
	if _, err := w.Flush(t.Context(), readmodeltest.At(w.Next)); !errors.Is(err, projection.ErrFenced) {
		t.Errorf("error %v, want ErrFenced: what the backup lacks would be passed over", err)
	}
	expect(t, readmodeltest.Current(t, pool, "a"), "EUR 1.00 1 open a-1 false -")
}

// The breaker's reason quotes the last dead letter, whose text may come from elsewhere. A text that
// PostgreSQL refuses would keep the position from moving, again and again.
func TestAnyReasonOfABreakerIsStored(t *testing.T) {
	pool := openPool(t)
	pos := newWorker(t, pool, inPartition(0)).MustClaim("me", projection.NoOffset)
	to := pos
	to.Breaker.Reason = "open: \xc3, \x00"
	if err := readmodel.Transact(t.Context(), pool, func(tx *readmodel.Tx) error {
		tx.Move(readmodel.Move{Partition: inPartition(0), From: pos, To: to})
		return tx.Send(t.Context())
	}); err != nil {
		t.Fatal(err)
	}
	stored, err := readmodel.LoadPositions(t.Context(), pool, inPartition(0).Group, inPartition(0).Topic)
	if err != nil || len(stored) != 1 || stored[0].Breaker.Reason != "open: \uFFFD, \uFFFD" {
		t.Errorf("%+v, %v", stored, err)
	}
}

// In TestALostClaimsFenceIsNotGivenAgain, an asynchronous failover loses a claim, and with it a
// repair that the owner has seen. The next claim, at the same offset, is by another owner and must
// get a new fence. The first owner must not write any more, because events that it counts as
// duplicates are no longer applied.
func TestALostClaimsFenceIsNotGivenAgain(t *testing.T) {
	pool := openPool(t)
	first := newWorker(t, pool, inPartition(0))
	first.MustClaim("first", projection.NoOffset)
	before := fenceOf(t, pool)
	first.MustClaim("first", projection.NoOffset)
	first.MustFold(credit("a", 1, "1", "EUR"))
	if _, err := pool.Exec(t.Context(), "UPDATE projector_position SET fence = $1", before); err != nil {
		t.Fatal(err)
	}
	newWorker(t, pool, inPartition(0)).MustClaim("second", projection.NoOffset)
	if _, err := first.VerifyAndFlush(); !errors.Is(err, projection.ErrFenced) {
		t.Errorf("error %v, want ErrFenced: the partition is another's", err)
	}
}

func fenceOf(t *testing.T, pool *pgxpool.Pool) (fence int64) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "SELECT fence FROM projector_position").Scan(&fence); err != nil {
		t.Fatal(err)
	}
	return fence
}

// TestAFenceReachesAPositionThatIsInsertedWhileItWaits inserts a position of another group while a
// fence waits for a running transaction of a consumer. The owner of this position is fenced, too.
func TestAFenceReachesAPositionThatIsInsertedWhileItWaits(t *testing.T) {
	pool := openPool(t)
	claim := func(group string) projection.Position {
		t.Helper()
		p := readmodel.Partition{Projection: readmodel.BalanceName, Group: group, Topic: "events"}
		claimed, err := readmodel.ClaimPosition(t.Context(), pool, p, projection.Claim{Owner: "me", TopicID: "id", Committed: projection.NoOffset})
		if err != nil {
			t.Fatal(err)
		}
		return claimed
	}
	claim("g")
	flush, err := pool.Begin(t.Context())
	if err == nil {
		_, err = flush.Exec(t.Context(), "UPDATE projector_position SET next_offset = 1")
	}
	if err != nil {
		t.Fatal(err)
	}
	fenced := make(chan error, 1)
	go func() {
		fenced <- readmodel.Transact(t.Context(), pool, func(tx *readmodel.Tx) error {
			readmodel.QueueFence(tx, readmodel.BalanceName, nil, nil)
			return tx.Send(t.Context())
		})
	}()
	readmodeltest.AwaitLock(t, pool, 1, nil)
	another := claim("another")
	if err := errors.Join(flush.Commit(t.Context()), <-fenced); err != nil {
		t.Fatal(err)
	}
	p := readmodel.Partition{Group: "another", Topic: "events"}
	if err := readmodel.VerifyPosition(t.Context(), pool, p, another); !errors.Is(err, projection.ErrFenced) {
		t.Errorf("the owner of the new position: %v", err)
	}
}
