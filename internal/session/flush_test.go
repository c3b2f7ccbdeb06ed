package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"projector/internal/pace"
	"projector/internal/session"
	"projector/projection"
)

// TestFlushReportsHowItEnded checks the outcome and the calls of a flush, mostly with 3 pending
// events.
func TestFlushReportsHowItEnded(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	letters := make([]projection.DeadLetter, 2)
	published, verified := "publish 0 to 8", "verify"
	for name, c := range map[string]struct {
		script script
		events int
		ctx    context.Context
		want   session.Outcome
		err    error
		calls  []string
	}{
		"written":                      {script{}, 3, nil, session.Written, nil, []string{published, verified, "write 3"}},
		"dead letters first":           {script{letters: letters}, 3, nil, session.Written, nil, []string{"publish 2 to 8", verified, "write 3"}},
		"not published":                {script{publish: []error{errAway}}, 3, nil, session.Failed, errAway, []string{published, verified}},
		"decided on old state":         {script{verify: []error{projection.ErrStale}}, 3, nil, session.Overtaken, projection.ErrStale, []string{published, verified}},
		"away before the publishing":   {script{verify: []error{errAway}}, 3, nil, session.Failed, errAway, []string{published, verified}},
		"not written":                  {script{write: []error{errAway}}, 3, nil, session.Failed, errAway, []string{published, verified, "write 3"}},
		"another owner":                {script{write: []error{projection.ErrFenced}}, 3, nil, session.Overtaken, projection.ErrFenced, []string{published, verified, "write 3"}},
		"another writer":               {script{write: []error{projection.ErrStale}}, 3, nil, session.Overtaken, projection.ErrStale, []string{published, verified, "write 3"}},
		"a row refused of many":        {script{write: []error{refusal()}}, 3, nil, session.Refused, nil, []string{published, verified, "write 3"}},
		"the refused row alone":        {script{write: []error{refusal()}}, 1, nil, session.Refused, nil, []string{"publish 0 to 6", verified, "write 1", "refuse"}},
		"refused as a dead letter too": {script{write: []error{refusal()}, refusedBefore: true}, 1, nil, session.Stuck, nil, []string{"publish 0 to 6", verified, "write 1", "refuse"}},
		"the context has ended":        {script{}, 3, ended, session.Failed, context.Canceled, []string{published, verified, "write 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &c.script
			one := begun(t, s, limits)
			if n, err := one.Fold(t.Context(), s.records(c.events)); n != c.events || err != nil {
				t.Fatalf("folded %d: %v", n, err)
			}
			ctx := c.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			r := one.Flush(ctx)
			if r.Outcome != c.want || r.Events != c.events || c.err != nil && !errors.Is(r.Err, c.err) || (r.Err == nil) != (c.want == session.Written) {
				t.Errorf("%+v, want outcome %d, %v", r, c.want, c.err)
			}
			sameCalls(t, s, c.calls...)
			wrote := slices.Contains(c.calls, fmt.Sprint("write ", c.events))
			if known := r.Outcome == session.Written || !wrote; one.OutcomeKnown() != known {
				t.Errorf("the outcome is known: %v", !known)
			}
			if r.Outcome != session.Written {
				return
			}
			next := 5 + int64(c.events)
			if r.Next.Offset != next || s.next != r.Next || r.Flushed.Records != c.events || !one.Durable() || !one.Since().IsZero() || one.Oldest() != 0 {
				t.Errorf("%+v, wrote to %d, durable %v", r, s.next, one.Durable())
			}
			if r := one.Flush(t.Context()); r.Outcome != session.Nothing || len(s.calls) != len(c.calls) {
				t.Errorf("flushed again: %+v", r)
			}
		})
	}
}

func TestTheReasonOfARefusalHasARemedy(t *testing.T) {
	s := &script{write: []error{refusal()}}
	one := begun(t, s, limits)
	if _, err := one.Fold(t.Context(), s.records(1)); err != nil {
		t.Fatal(err)
	}
	one.Flush(t.Context())
	if len(s.reasons) != 1 || !strings.HasPrefix(s.reasons[0], "PostgreSQL refused the row: ") {
		t.Errorf("%q", s.reasons)
	}
}

// TestARefusedEventIsSoonAlone shows that each flush after a refusal is smaller than the previous
// one.
func TestARefusedEventIsSoonAlone(t *testing.T) {
	s := &script{}
	l := limits
	l.Events = 1000
	one := begun(t, s, l)
	var sizes []int
	for len(s.reasons) == 0 && len(sizes) < 10 {
		n, err := one.Fold(t.Context(), s.records(1000))
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, n)
		s.write = []error{refusal()}
		if r := one.Flush(t.Context()); r.Outcome != session.Refused || r.Events != n {
			t.Fatalf("%+v", r)
		}
		s.pending = projection.Pending{}
		claimAgain(t, one)
	}
	if !slices.Equal(sizes, []int{1000, 125, 15, 1}) {
		t.Errorf("sizes %v", sizes)
	}
}

// TestBeingOvertakenAgainAndAgainIsAFailure shows that the outcome changes from Overtaken to Failed
// if every write fails with projection.ErrStale.
func TestBeingOvertakenAgainAndAgainIsAFailure(t *testing.T) {
	s := &script{}
	one := begun(t, s, limits)
	for _, want := range []session.Outcome{session.Overtaken, session.Overtaken, session.Failed, session.Failed} {
		if _, err := one.Fold(t.Context(), s.records(1)); err != nil {
			t.Fatal(err)
		}
		s.write = []error{projection.ErrStale}
		if r := one.Flush(t.Context()); r.Outcome != want {
			t.Errorf("%+v, want outcome %d", r, want)
		}
		s.pending = projection.Pending{}
		claimAgain(t, one)
	}
	if _, err := one.Fold(t.Context(), s.records(1)); err != nil {
		t.Fatal(err)
	}
	if r := one.Flush(t.Context()); r.Outcome != session.Written {
		t.Fatalf("%+v", r)
	}
	s.pending.Events, s.write = 1, []error{projection.ErrStale} // the count starts again
	if r := one.Flush(t.Context()); r.Outcome != session.Overtaken {
		t.Errorf("%+v", r)
	}
}

func TestAnOpenBreakerIsReported(t *testing.T) {
	s := &script{}
	one := begun(t, s, limits)
	if _, err := one.Fold(t.Context(), s.records(2)); err != nil {
		t.Fatal(err)
	}
	s.pending.Open = true
	if !one.Full() {
		t.Error("more may be folded after the breaker has opened")
	}
	if r := one.Flush(t.Context()); r.Outcome != session.Written || !r.Open {
		t.Errorf("%+v", r)
	}
}

// TestASilentWriteIsGivenUp shows that a write of one event is ended only when the database sends
// no answer within the limit. A write of several events is ended at the latest at this limit.
func TestASilentWriteIsGivenUp(t *testing.T) {
	for _, c := range []struct {
		events, answers int
		took            time.Duration
	}{
		{1, 0, 10 * time.Second},
		{1, 3, 37 * time.Second},
		{2, 3, 9 * time.Second}, // after 9 s it is clear that the rest takes too long
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{writing: func(ctx context.Context) {
				pace.Expect(ctx, 100)
				for range c.answers {
					select {
					case <-time.After(9 * time.Second):
						pace.Answered(ctx, 1)
					case <-ctx.Done():
					}
				}
				<-ctx.Done()
			}}
			l := limits
			l.Silence = 10 * time.Second
			one := begun(t, s, l)
			if _, err := one.Fold(t.Context(), s.records(c.events)); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			r := one.Flush(t.Context())
			var timeout *pace.TimeoutError
			if r.Outcome != session.Failed || !errors.As(r.Err, &timeout) || time.Since(began) != c.took {
				t.Errorf("%+v: %+v after %s", c, r, time.Since(began))
			}
		})
	}
}

// TestALostAnswerToCommitIsReportedOnce shows that the stored position decides whether a write with
// a lost reply is reported as committed.
func TestALostAnswerToCommitIsReportedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		found *projection.FencedOffset
		claim error
		want  session.Outcome
	}{
		"written":                      {&projection.FencedOffset{Next: 8, Fence: 7}, nil, session.Confirmed},
		"written, and the claim fails": {&projection.FencedOffset{Next: 8, Fence: 7}, errAway, session.Confirmed},
		"not written":                  {&projection.FencedOffset{Next: 5, Fence: 7}, nil, session.Dropped},
		"written by another owner":     {&projection.FencedOffset{Next: 8, Fence: 8}, nil, session.Dropped},
		"restored":                     {&projection.FencedOffset{Next: 2, Fence: 7}, nil, session.Dropped},
		"nothing found":                {nil, errAway, session.Nothing},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{write: []error{errAway}}
			one := begun(t, s, limits)
			if _, err := one.Fold(t.Context(), s.records(3)); err != nil {
				t.Fatal(err)
			}
			one.Flush(t.Context())
			s.found, s.claim = c.found, c.claim
			_, r, err := one.Claim(t.Context(), projection.Claim{})
			if r.Outcome != c.want || !errors.Is(err, c.claim) || one.OutcomeKnown() != (c.want != session.Nothing) {
				t.Fatalf("%+v, %v, known %v", r, err, one.OutcomeKnown())
			}
			if c.want != session.Nothing && (r.Events != 3 || !errors.Is(r.Err, errAway)) {
				t.Errorf("%+v", r)
			}
			if c.want == session.Confirmed && (r.Flushed.Records != 3 || r.Next.Offset != 8) {
				t.Errorf("%+v", r)
			}
			if c.want == session.Nothing {
				return
			}
			if _, r, _ := one.Claim(t.Context(), projection.Claim{}); r.Outcome != session.Nothing {
				t.Errorf("reported again: %+v", r)
			}
		})
	}
}

// TestFlushLast shows the outcome of the only attempt that FlushLast makes. The write also counts
// as done if the stored position shows that an earlier write was committed and only its reply was
// lost.
func TestFlushLast(t *testing.T) {
	moved := func(context.Context) (projection.FencedOffset, error) {
		return projection.FencedOffset{Next: 8, Fence: 7}, nil
	}
	for name, c := range map[string]struct {
		before error // result of an earlier write
		script script
		found  func(context.Context) (projection.FencedOffset, error)
		want   session.Outcome
	}{
		"written":                               {nil, script{}, nil, session.Written},
		"not published":                         {nil, script{publish: []error{errAway}}, nil, session.Failed},
		"not written":                           {nil, script{write: []error{errAway}}, nil, session.Failed},
		"another owner":                         {nil, script{write: []error{projection.ErrFenced}}, nil, session.Failed},
		"written, and only the answer was lost": {errAway, script{write: []error{projection.ErrFenced}}, moved, session.Written},
		"overtaken by another owner before": {errAway, script{write: []error{projection.ErrFenced}}, func(context.Context) (projection.FencedOffset, error) {
			return projection.FencedOffset{Next: 8, Fence: 8}, nil
		}, session.Failed},
		"nobody knows": {errAway, script{write: []error{projection.ErrFenced}}, func(context.Context) (projection.FencedOffset, error) { return projection.FencedOffset{}, errAway }, session.Failed},
		"not written before, and not written now": {errAway, script{write: []error{errAway}}, nil, session.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			s := &c.script
			if c.before != nil {
				s.write = slices.Insert(s.write, 0, c.before)
			}
			one := begun(t, s, limits)
			if _, err := one.Fold(t.Context(), s.records(3)); err != nil {
				t.Fatal(err)
			}
			if c.before != nil {
				one.Flush(t.Context())
			}
			r := one.FlushLast(t.Context(), c.found)
			if r.Outcome != c.want || (r.Err == nil) != (c.want == session.Written) {
				t.Fatalf("%+v, want outcome %d", r, c.want)
			}
			if c.want == session.Written && (r.Next.Offset != 8 || r.Flushed.Records != 3 || !one.OutcomeKnown()) {
				t.Errorf("%+v, known %v", r, one.OutcomeKnown())
			}
		})
	}
	one := begun(t, &script{}, limits)
	if r := one.FlushLast(t.Context(), nil); r.Outcome != session.Nothing {
		t.Errorf("nothing was pending: %+v", r)
	}
}
