package consumer

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/telemetry"
)

// healthLog is a Health that records its calls in order.
type healthLog struct {
	quiet
	mu       sync.Mutex
	reported []string
}

func (h *healthLog) note(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reported = append(h.reported, what)
}

func (h *healthLog) Fail(condition, _ string) { h.note("fail " + condition) }
func (h *healthLog) FailAfter(condition, _ string, grace time.Duration) {
	if grace == 0 {
		h.note("fail " + condition)
	} else {
		h.note("soon " + condition)
	}
}
func (h *healthLog) OK(condition string) { h.note("ok " + condition) }

// count returns how many of the recorded calls are equal to what. It ignores the calls with an
// index below from.
func (h *healthLog) count(from int, what string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, reported := range h.reported[min(from, len(h.reported)):] {
		if reported == what {
			n++
		}
	}
	return n
}

// TestAMissingGrantStaysUnready shows that the instance stays unready if a broker answers metadata
// requests but refuses the request to join the group. Successful metadata checks must not clear the
// condition that the client's errors have set.
func TestAMissingGrantStaysUnready(t *testing.T) {
	t.Parallel()
	cluster, seeds := startFake(t, 1, 1)
	cluster.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
		resp.ErrorCode = kerr.GroupAuthorizationFailed.Code
		return resp, nil, true
	})
	h, s := &healthLog{}, pending(0)
	c := scriptedConsumer(t, s, func(cfg *Config) {
		cfg.Client, cfg.Health = []kgo.Opt{seeds}, h
	})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	from := 0
	for failed := false; !failed || h.count(from, "ok kafka") < 2; <-tick.C {
		if ctx.Err() != nil {
			t.Fatal("never unready, or metadata is not looked at any more")
		}
		if !failed && h.count(0, "fail fetch") > 0 {
			failed = true
			h.mu.Lock()
			from = len(h.reported)
			h.mu.Unlock()
		}
	}
	if h.count(from, "ok fetch") > 0 {
		t.Error("called ready again though nothing can be consumed")
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestOneErrorOfTheClientDoesNotMakeUnready shows that the instance stays ready after a single error,
// and that it is unready 10 s after the first of several.
func TestOneErrorOfTheClientDoesNotMakeUnready(t *testing.T) {
	for _, errors := range []int{1, 10} {
		synctest.Test(t, func(t *testing.T) {
			h := telemetry.NewHealth()
			h.Started()
			c := scriptedConsumer(t, &script{}, func(cfg *Config) { cfg.Health = h })
			c.joinedAt.Store(new(time.Now()))
			for tick := range 10 {
				if tick < errors {
					c.fetchFailed("t", 0, kerr.CoordinatorNotAvailable)
				}
				if ready, why := h.Ready(); ready != (errors == 1 || time.Duration(tick)*watchEvery < stuckAfter) {
					t.Errorf("%d errors, after %s: ready %t, %v", errors, time.Duration(tick)*watchEvery, ready, why)
				}
				<-time.After(watchEvery)
				if ready, why := h.Ready(); errors == 1 && !ready {
					t.Errorf("one error, before the check after %s: %v", time.Duration(tick+1)*watchEvery, why)
				}
				c.noteFetching()
			}
		})
	}
}

// TestAMemberForMomentsIsUnready has a client whose heartbeats fail. It is a member again for a
// heartbeat interval after each join. Its errors are farther apart than fetchQuiet.
func TestAMemberForMomentsIsUnready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := telemetry.NewHealth()
		h.Started()
		c := scriptedConsumer(t, &script{}, func(cfg *Config) { cfg.Health = h })
		close(c.ready)
		const step = 500 * time.Millisecond
		for tick := range 120 {
			switch tick % 13 {
			case 0:
				c.unassigned(t.Context(), nil, true)
				c.fetchFailed("", 0, kerr.CoordinatorNotAvailable)
			case 5:
				c.assigned(t.Context(), nil, nil)
			}
			if time.Duration(tick)*step%watchEvery == 0 {
				c.noteFetching()
			}
			if ready, _ := h.Ready(); ready && time.Duration(tick)*step > stuckAfter {
				t.Errorf("ready after %s", time.Duration(tick)*step)
			}
			<-time.After(step)
		}
	})
}

// retryLog is an Observer that records the retries.
type retryLog struct {
	quiet
	counted []string
}

func (l *retryLog) Retry(dependency, reason string) {
	l.counted = append(l.counted, dependency+" "+reason)
}

// TestFailedChecksAreCounted shows that the regular checks of the servers count as retries. They are
// the only failures of an instance that has nothing to consume.
func TestFailedChecksAreCounted(t *testing.T) {
	retries := &retryLog{}
	c := scriptedConsumer(t, &script{}, func(cfg *Config) { cfg.Observer = retries })
	c.report(t.Context(), "kafka", "Kafka: ", kerr.CoordinatorNotAvailable)
	c.report(t.Context(), "access", "Kafka: ", kerr.TopicAuthorizationFailed)
	c.report(t.Context(), "postgres", "PostgreSQL: ", &pgconn.PgError{Code: "57P03"})
	c.report(t.Context(), "postgres", "PostgreSQL: ", nil)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	c.report(stopped, "postgres", "PostgreSQL: ", context.Canceled)
	want := []string{"kafka COORDINATOR_NOT_AVAILABLE", "kafka TOPIC_AUTHORIZATION_FAILED", "postgres 57P03"}
	if !slices.Equal(retries.counted, want) {
		t.Errorf("counted %q, want %q", retries.counted, want)
	}
}
