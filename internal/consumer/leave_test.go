package consumer

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestStopDoesNotWaitForADeadMember shows a stop while the group waits for a dead member. A new
// member, which has to wait too, stops immediately and leaves the group.
func TestStopDoesNotWaitForADeadMember(t *testing.T) {
	t.Parallel()
	cluster, seeds := startFake(t, 1, 1)
	joins := make(chan struct{}, 100)
	cluster.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		// The first request has no id. The broker returns one, and the member asks again.
		if req.(*kmsg.JoinGroupRequest).MemberID != "" {
			joins <- struct{}{}
		}
		return nil, nil, false
	})
	leaveADeadMember(t, seeds)
	<-joins

	s := pending(0)
	c := scriptedConsumer(t, s, func(cfg *Config) {
		cfg.Client, cfg.SessionTimeout = []kgo.Opt{seeds}, 4*time.Minute
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	<-joins
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("still waiting for a member that is dead")
	}
	adm, err := kadm.NewOptClient(seeds)
	if err != nil {
		t.Fatal(err)
	}
	defer adm.Close()
	groups, err := adm.DescribeGroups(t.Context(), "g")
	if err != nil {
		t.Fatal(err)
	}
	if members := groups["g"].Members; len(members) != 1 {
		t.Errorf("%d members are left, want the dead one only", len(members))
	}
}

// leaveADeadMember joins the group with a member that then sends nothing more.
func leaveADeadMember(t *testing.T, seeds kgo.Opt) {
	t.Helper()
	life, die := context.WithCancel(t.Context())
	assigned := make(chan struct{})
	cl, err := kgo.NewClient(seeds, kgo.WithContext(life), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"),
		kgo.SessionTimeout(4*time.Minute), kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { close(assigned) }))
	if err != nil {
		t.Fatal(err)
	}
	<-assigned
	die()
	cl.Close()
}

// TestStopIsInTimeWhateverHangs shows that each step of a stop has a time limit. All limits together
// are less than 10 s. In this test PostgreSQL hangs during a flush, Kafka does not answer commits,
// and then the broker answers no request at all.
func TestStopIsInTimeWhateverHangs(t *testing.T) {
	t.Parallel()
	cluster, seeds := startFake(t, 1, 1)
	var silent atomic.Bool
	cluster.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return nil, nil, silent.Load() || req.Key() == int16(kmsg.OffsetCommit)
	})
	client, err := kgo.NewClient(seeds)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "t"}).FirstErr(); err != nil {
		t.Fatal(err)
	}

	s := pending(0)
	s.write = slices.Repeat([]error{context.DeadlineExceeded}, 100)
	writing, once := make(chan struct{}), sync.Once{}
	s.context = func(ctx context.Context) {
		if s.pending > 0 {
			once.Do(func() { close(writing) })
			<-ctx.Done()
		}
	}
	c := scriptedConsumer(t, s, func(cfg *Config) {
		cfg.Client, cfg.DrainWithin, cfg.Retry.Attempt = []kgo.Opt{seeds}, 5*time.Second, 30*time.Second
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	<-writing
	silent.Store(true)
	stop()
	began := time.Now()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("has not stopped")
	}
	t.Logf("stopped within %s", time.Since(began).Round(time.Millisecond))
	if took := time.Since(began); took > 20*time.Second { // a busy machine may need some seconds more than the limits
		t.Errorf("the stop took %s", took)
	}
}
