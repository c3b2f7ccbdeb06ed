package pace_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"projector/errclass"
	"projector/internal/pace"
)

// The function answers reports progress the given number of times, at the given interval. Then it
// waits for the end of its context.
func answers(ctx context.Context, every time.Duration, times int) error {
	for range times {
		select {
		case <-time.After(every):
			pace.Answered(ctx, 10)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestSilenceEndsAnAttemptAndWorkDoesNot(t *testing.T) {
	const limit = 30 * time.Second
	for _, c := range []struct {
		every time.Duration
		times int
		ends  time.Duration
		done  int
	}{
		{0, 0, limit, 0},
		{29 * time.Second, 10, 290*time.Second + limit, 100},
		{31 * time.Second, 10, limit, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := pace.Begin(t.Context(), limit)
			pace.Expect(a.Context(), 200)
			err := a.End(fmt.Errorf("write: %w", answers(a.Context(), c.every, c.times)))
			if a.Took() != c.ends || a.Done(200) != c.done {
				t.Errorf("answered each %s: ended after %s with %d done, want %s with %d", c.every, a.Took(), a.Done(200), c.ends, c.done)
			}
			if errclass.Postgres(err) != errclass.Retry || errclass.Reason(err) != "timeout" || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error %v is %s, %s, want a time-out", err, errclass.Postgres(err), errclass.Reason(err))
			}
			if text := errclass.Safe(err); text != "no answer for 30s" {
				t.Errorf("it reads %q", text)
			}
		})
	}
}

func TestABoundedAttemptEndsEarlyIfItIsTooSlow(t *testing.T) {
	const limit = 30 * time.Second
	for _, c := range []struct {
		every time.Duration
		times int
		ends  time.Duration
		text  string
	}{
		{time.Second, 19, limit, "not done within 30s"}, // estimated 20 s, but the last answer does not come
		{2 * time.Second, 20, 6 * time.Second, "more than can be done within 30s"},
		{12 * time.Second, 20, 12 * time.Second, "more than can be done within 30s"},
		{31 * time.Second, 20, limit, "no answer for 30s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := pace.BeginBound(t.Context(), limit, limit)
			pace.Expect(a.Context(), 200)
			err := a.End(answers(a.Context(), c.every, c.times))
			if a.Took() != c.ends {
				t.Errorf("answered each %s: ended after %s, want %s", c.every, a.Took(), c.ends)
			}
			if text := errclass.Safe(err); text != c.text {
				t.Errorf("answered each %s: it reads %q, want %q", c.every, text, c.text)
			}
		})
	}
}

func TestTheCallersEndIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := pace.Begin(ctx, time.Minute)
		if err := a.End(answers(a.Context(), time.Hour, 1)); err != context.DeadlineExceeded || a.Took() != time.Second { //nolint:errorlint // as it is
			t.Errorf("%v after %s", err, a.Took())
		}
	})
}

func TestWithoutLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		a := pace.Begin(ctx, 0)
		if err := a.End(answers(a.Context(), time.Minute, 1)); !errors.Is(err, context.DeadlineExceeded) || a.Took() != time.Hour || a.Done(10) != 0 {
			t.Errorf("%v after %s, %d done", err, a.Took(), a.Done(10))
		}
	})
}

func TestWhatSucceedsIsNoError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := pace.Begin(t.Context(), time.Second)
		<-time.After(time.Minute) // this is longer than the attempt may last, but its work succeeds
		if err := a.End(nil); err != nil {
			t.Error(err)
		}
		if a.Context().Err() == nil {
			t.Error("its context goes on")
		}
	})
	pace.Answered(t.Context(), 1) // this context belongs to no attempt
}
