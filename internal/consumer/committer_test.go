package consumer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
)

// recorder records the offsets of each commit. If its field err is set, commit returns that error
// and records nothing.
type recorder struct {
	commits []map[int32]int64
	err     error
	during  func()
}

func (r *recorder) commit(_ context.Context, _ string, offsets map[int32]int64) error {
	if r.during != nil {
		r.during()
	}
	if r.err != nil {
		return r.err
	}
	r.commits = append(r.commits, maps.Clone(offsets))
	return nil
}

func newRecordedCommitter() (*committer, *recorder) {
	r := &recorder{}
	c := newCommitter(r.commit, func(error) {})
	c.acceptMarks(0)
	c.acceptMarks(1)
	return c, r
}

func wantCommits(t *testing.T, r *recorder, want ...map[int32]int64) {
	t.Helper()
	if len(r.commits) != len(want) {
		t.Fatalf("commits %v, want %v", r.commits, want)
	}
	for i := range want {
		if !maps.Equal(r.commits[i], want[i]) {
			t.Errorf("commit %d is %v, want %v", i, r.commits[i], want[i])
		}
	}
}

func TestCommitsTheNewestOnce(t *testing.T) {
	c, r := newRecordedCommitter()
	c.mark(0, 5)
	c.mark(0, 9)
	c.mark(1, 3)
	c.flush(t.Context())
	c.flush(t.Context())
	wantCommits(t, r, map[int32]int64{0: 9, 1: 3})
}

func TestAFailedCommitIsRepeatedUnlessOvertaken(t *testing.T) {
	c, r := newRecordedCommitter()
	c.mark(0, 5)
	c.mark(1, 3)
	r.err = errors.New("coordinator is loading")
	r.during = func() { c.mark(1, 4) }
	c.flush(t.Context())
	r.err, r.during = nil, nil
	c.flush(t.Context())
	wantCommits(t, r, map[int32]int64{0: 5, 1: 4})
}

func TestNothingIsCommittedForAPartitionNoLongerOwned(t *testing.T) {
	c, r := newRecordedCommitter()
	c.mark(0, 5)
	c.disown(t.Context(), []int32{0}, false) // revoked, so the durable offsets are committed
	c.mark(0, 8)                             // the worker may still be running
	c.flush(t.Context())
	wantCommits(t, r, map[int32]int64{0: 5})

	c.mark(1, 3)
	c.disown(t.Context(), []int32{1}, true) // lost, so another member may have committed
	c.flush(t.Context())
	wantCommits(t, r, map[int32]int64{0: 5})
}

func TestAFailureThatOutlivesTheOwnershipIsForgotten(t *testing.T) {
	c, r := newRecordedCommitter()
	c.mark(0, 5)
	r.err = errors.New("timed out")
	c.disown(t.Context(), []int32{0}, false)
	r.err = nil
	c.acceptMarks(0)
	c.flush(t.Context())
	wantCommits(t, r)
}

func TestConfirmingIsForOwnersOnly(t *testing.T) {
	c, r := newRecordedCommitter()
	if err := c.confirm(t.Context(), 1, "", 7); err != nil {
		t.Fatal(err)
	}
	c.disown(t.Context(), []int32{1}, true)
	if err := c.confirm(t.Context(), 1, "", 7); !errors.Is(err, errGivenUp) {
		t.Errorf("error %v, want errGivenUp", err)
	}
	wantCommits(t, r, map[int32]int64{1: 7})
}

// TestAnEvictedMemberClaimsAgain shows that a member that was evicted and has joined again does not
// commit a partition until it has claimed it again.
func TestAnEvictedMemberClaimsAgain(t *testing.T) {
	c, r := newRecordedCommitter()
	id, evicted := "first", []int32{}
	c.member, c.evicted = func() string { return id }, func(p int32) { evicted = append(evicted, p) }
	c.claimed(0, "first")
	c.claimed(1, "first")
	c.mark(0, 5)
	c.flush(t.Context())
	id = "second"
	c.claimed(1, "second")
	c.mark(0, 6)
	c.mark(1, 3)
	c.flush(t.Context())
	wantCommits(t, r, map[int32]int64{0: 5}, map[int32]int64{1: 3})
	if !slices.Equal(evicted, []int32{0}) {
		t.Errorf("to be claimed anew: %v, want partition 0", evicted)
	}
	c.claimed(0, "second")
	c.mark(0, 6)
	c.flush(t.Context())
	wantCommits(t, r, map[int32]int64{0: 5}, map[int32]int64{1: 3}, map[int32]int64{0: 6})
}
