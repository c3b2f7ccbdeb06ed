package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"projector/internal/retry"
)

func always(error) bool { return true }

func TestABoundedRetryGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		bound    retry.Bound
		fails    int // number of attempts that fail; -1 if all fail
		attempts int
		took     time.Duration
	}{
		"success":                   {retry.Bound{Pause: time.Second, Passing: always}, 0, 1, 0},
		"success after failures":    {retry.Bound{Pause: time.Second, Longest: time.Minute, Passing: always}, 3, 4, 7 * time.Second},
		"pauses of one length":      {retry.Bound{Pause: time.Second, Passing: always}, 3, 4, 3 * time.Second},
		"pauses up to the longest":  {retry.Bound{Pause: time.Second, Longest: 3 * time.Second, Passing: always}, 4, 5, 9 * time.Second},
		"so many attempts":          {retry.Bound{Attempts: 3, Pause: time.Second, Longest: time.Minute, Passing: always}, -1, 3, 3 * time.Second},
		"for so long":               {retry.Bound{Within: 10 * time.Second, Pause: time.Second, Longest: time.Minute, Passing: always}, -1, 4, 7 * time.Second},
		"a failure that stays":      {retry.Bound{Pause: time.Second, Passing: func(error) bool { return false }}, -1, 1, 0},
		"the last attempt succeeds": {retry.Bound{Within: 7 * time.Second, Pause: time.Second, Longest: time.Minute, Passing: always}, 3, 4, 7 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, attempts := time.Now(), 0
				err := c.bound.Do(t.Context(), func(context.Context) error {
					if attempts++; c.fails < 0 || attempts <= c.fails {
						return errDown
					}
					return nil
				})
				if errors.Is(err, errDown) != (c.fails < 0) || attempts != c.attempts || time.Since(began) != c.took {
					t.Errorf("%v after %d attempts in %s, want %d in %s", err, attempts, time.Since(began), c.attempts, c.took)
				}
			})
		})
	}
}

// TestABoundedRetryEndsWithItsContext checks that the returned error is the last failure. This
// failure helps a reader more than the error of an expired context.
func TestABoundedRetryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		began := time.Now()
		err := retry.Bound{Pause: time.Minute, Passing: always}.Do(ctx, func(context.Context) error { return errDown })
		if !errors.Is(err, errDown) || time.Since(began) != 90*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestProgressBeginsTheBoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries, began := retry.Bound{Attempts: 3, Within: 5 * time.Second, Pause: time.Second, Longest: time.Minute, Passing: always}.Begin(), time.Now()
		for range 4 {
			for range 2 {
				if !tries.Again(t.Context(), errDown) {
					t.Fatalf("given up after %s", time.Since(began))
				}
			}
			tries.Progress()
		}
		if time.Since(began) != 12*time.Second {
			t.Errorf("it took %s", time.Since(began))
		}
		tries.Again(t.Context(), errDown)
		tries.Again(t.Context(), errDown)
		if tries.Again(t.Context(), errDown) {
			t.Error("a fourth attempt without progress")
		}
	})
}

func TestPassing(t *testing.T) {
	for code, want := range map[string]bool{"57P01": true, "40001": true, "25006": true, "23514": false, "42501": false} {
		if retry.Passing(sqlstate(code)) != want {
			t.Errorf("%s: passing is not %v", code, want)
		}
	}
}
