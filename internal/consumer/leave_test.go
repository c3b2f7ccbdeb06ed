package consumer

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A group that waits for a dead member keeps one that joins waiting. Told to stop, that
// one waits no longer, and is nobody the group would have to wait for.
func TestStopDoesNotWaitForADeadMember(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	seeds := kgo.SeedBrokers(cluster.ListenAddrs()...)
	joins := make(chan struct{}, 100)
	cluster.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if req.(*kmsg.JoinGroupRequest).MemberID != "" { // before, it is told its id and comes again
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

// leaveADeadMember has a member join the group and then never be heard of again.
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
