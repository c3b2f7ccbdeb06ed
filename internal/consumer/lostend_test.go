package consumer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/retry"
	"projector/internal/session"
	"projector/projection"
)

func TestWhatContradictsAPosition(t *testing.T) {
	const none, unknown = projection.NoOffset, projection.NoEpoch
	cases := map[string]struct {
		next projection.NextOffset
		end  logEnd
		want string // part of the expected text; empty if nothing is lost
		soon bool   // the answer is accepted immediately
	}{
		"at the end":                        {projection.NextOffset{Offset: 6, LeaderEpoch: 1}, logEnd{6, 1, 6}, "", true},
		"before the end":                    {projection.NextOffset{Offset: 6, LeaderEpoch: 1}, logEnd{9, 1, 9}, "", true},
		"at the end of its epoch":           {projection.NextOffset{Offset: 6, LeaderEpoch: 1}, logEnd{9, 2, 6}, "", true},
		"taken back, so of an upper limit":  {projection.NextOffset{Offset: 3, LeaderEpoch: 1}, logEnd{9, 2, 6}, "", true},
		"a log without epochs":              {projection.NextOffset{Offset: 6, LeaderEpoch: unknown}, logEnd{9, unknown, none}, "", true},
		"brokers that do not know of them":  {projection.NextOffset{Offset: 6, LeaderEpoch: 1}, logEnd{9, unknown, none}, "", true},
		"an epoch the leader has forgotten": {projection.NextOffset{Offset: 6, LeaderEpoch: 1}, logEnd{9, 3, none}, "", true},

		"cut off":                         {projection.NextOffset{Offset: 6, LeaderEpoch: 1}, logEnd{2, 1, 2}, "the log ends at 2", true},
		"cut off, without epochs":         {projection.NextOffset{Offset: 6, LeaderEpoch: unknown}, logEnd{2, unknown, none}, "the log ends at 2", true},
		"cut off and written on":          {projection.NextOffset{Offset: 6, LeaderEpoch: 1}, logEnd{9, 2, 2}, "epoch 1, which ends at 2", true},
		"by one who may not be leader":    {projection.NextOffset{Offset: 6, LeaderEpoch: 3}, logEnd{2, 2, none}, "the log ends at 2", false},
		"by one whose epoch is earlier":   {projection.NextOffset{Offset: 6, LeaderEpoch: 3}, logEnd{9, 2, none}, "the leader is of epoch 2", false},
		"cut off by a leader without any": {projection.NextOffset{Offset: 6, LeaderEpoch: 3}, logEnd{2, unknown, none}, "the log ends at 2", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			lost := c.end.contradicts(c.next)
			if lost.found == "" != (c.want == "") || !strings.Contains(lost.found, c.want) {
				t.Errorf("%q, want %q", lost.found, c.want)
			}
			if soon := c.end.believed(c.next, 0); soon != c.soon || !c.end.believed(c.next, time.Minute) {
				t.Errorf("believed at once: %t, want %t; and after a minute in any case", soon, c.soon)
			}
		})
	}
}

// TestAnEarlierLeaderIsAskedAgain shows that the answers of an earlier leader are not accepted
// immediately. Such a leader does not know that it was replaced, and reports the end of its own
// log.
func TestAnEarlierLeaderIsAskedAgain(t *testing.T) {
	t.Parallel()
	cluster, seeds := startFake(t, 1, 1)
	if err := cluster.MoveTopicPartition("t", 0, 0); err != nil { // this starts epoch 1
		t.Fatal(err)
	}
	for range 6 {
		produceToEach(t, seeds, 1)
	}
	var earlier atomic.Int32
	earlier.Store(lostAsks + 1)
	cluster.ControlKey(int16(kmsg.ListOffsets), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		req := kreq.(*kmsg.ListOffsetsRequest)
		if req.Topics[0].Partitions[0].Timestamp != -1 || earlier.Add(-1) < 0 {
			return nil, nil, false
		}
		partition := kmsg.NewListOffsetsResponseTopicPartition()
		partition.Offset, partition.LeaderEpoch = 2, 0
		topic := kmsg.NewListOffsetsResponseTopic()
		topic.Topic, topic.Partitions = "t", append(topic.Partitions, partition)
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	w := newWorker(t.Context(), scriptedConsumer(t, pending(0), func(cfg *Config) {
		cfg.Client = []kgo.Opt{seeds}
		cfg.Retry = retry.Policy{Initial: 50 * time.Millisecond, Attempt: 10 * time.Second}
	}), 0)
	defer w.cancel(nil)
	connect(t, w.c, seeds)

	lost, err := w.lostEnd(projection.NextOffset{Offset: 6, LeaderEpoch: 1}, partitionInfo{end: 2})
	if lost.found != "" || err != nil || earlier.Load() >= 0 {
		t.Errorf("%q, %v, after %d answers of the earlier leader", lost.found, err, lostAsks+1-earlier.Load())
	}
	// An answer of the current leader is accepted.
	lost, err = w.lostEnd(projection.NextOffset{Offset: 7, LeaderEpoch: 1}, partitionInfo{end: 6, epoch: 1})
	if lost != (loss{6, "the log ends at 6"}) || err != nil {
		t.Errorf("%+v, %v", lost, err)
	}
}

// connect gives the consumer a client that is no member of its group.
func connect(t *testing.T, c *Consumer, seeds kgo.Opt) {
	t.Helper()
	cl, err := kgo.NewClient(seeds)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	c.cl, c.adm = cl, kadm.NewClient(cl)
}

// refilled is a script whose claim takes so long that new records fill the log up to the position.
type refilled struct {
	*script
	position projection.Position
	refill   func()
	claim    projection.Claim // the last one
}

func (r *refilled) Claim(_ context.Context, c projection.Claim) (projection.Position, error) {
	r.claim = c
	r.refill()
	return r.position, nil
}

// TestALossFoundBeforeAClaimIsNotForgotten: Kafka's committed offset is lower than the position, and
// the log has lost records between them. While the partition is claimed, the log grows past the
// position again. The partition must stop all the same, because its next records were not consumed.
func TestALossFoundBeforeAClaimIsNotForgotten(t *testing.T) {
	t.Parallel()
	_, seeds := startFake(t, 1, 1)
	produce := func(n int) {
		for range n {
			produceToEach(t, seeds, 1)
		}
	}
	produce(4)
	position := projection.Position{Next: 6, LeaderEpoch: projection.NoEpoch, Fence: 8, Found: &projection.FencedOffset{Next: 6, Fence: 7}}
	stored := projection.StoredPosition{Position: position}
	stored.Fence = position.Found.Fence
	s := &refilled{script: &script{positions: []projection.StoredPosition{stored}}, position: position, refill: func() { produce(3) }}
	w := newWorker(t.Context(), scriptedConsumer(t, s.script, func(cfg *Config) {
		cfg.Client = []kgo.Opt{seeds}
		cfg.Open = func(int32) session.Projection { return s }
		cfg.Retry = retry.Policy{Attempt: time.Minute}
	}), 0)
	defer w.cancel(nil)
	connect(t, w.c, seeds)
	w.c.committer = newCommitter(func(context.Context, string, map[int32]int64) error { return nil }, func(error) {})
	w.c.committer.acceptMarks(0)

	if _, err := w.claim(3); !errors.Is(err, errHalted) || !slices.Contains(s.calls, "stop") {
		t.Errorf("the claim gives %v after the calls %v, want that the partition is stopped", err, s.calls)
	}
	if s.claim.Committed != projection.NoOffset {
		t.Errorf("the position goes back to %d although the log has lost its end", s.claim.Committed)
	}
}

// TestAnEarlierStateOfTheDatabaseGetsNewConnections shows a claim at a database that has lost the
// newest position, as after a failover. Other connections may still be to the old server, which has
// that state. So all connections are replaced, and the partition is claimed again.
func TestAnEarlierStateOfTheDatabaseGetsNewConnections(t *testing.T) {
	t.Parallel()
	_, seeds := startFake(t, 1, 1)
	for name, c := range map[string]struct {
		durable, committed int64 // what this worker and Kafka know
		byHand             bool  // a person has set the position, and its commit to Kafka is not noted
		again              bool
	}{
		"lost what this worker has written":      {5, projection.NoOffset, false, true},
		"lost what another member has committed": {0, 5, false, true},
		"lost all since a position was set":      {5, projection.NoOffset, true, true},
		"lost nothing":                           {3, 3, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{found: &projection.FencedOffset{Next: 3, Fence: 7}, byHand: c.byHand}
			w := newWorker(t.Context(), scriptedConsumer(t, s, func(cfg *Config) {
				cfg.Client, cfg.Retry = []kgo.Opt{seeds}, retry.Policy{Attempt: time.Minute}
			}), 0)
			defer w.cancel(nil)
			connect(t, w.c, seeds)
			w.c.committer = newCommitter(func(context.Context, string, map[int32]int64) error { return nil }, func(error) {})
			w.c.committer.acceptMarks(0)
			if c.durable > 0 {
				w.status.claimed(projection.Position{Next: c.durable, Fence: 7})
			}
			_, err := w.claim(c.committed)
			if errors.Is(err, session.ErrAgain) != c.again || slices.Contains(s.calls, "reset") != c.again {
				t.Errorf("the claim gives %v after the calls %v", err, s.calls)
			}
			s.calls = nil
			if _, err := w.claim(projection.NoOffset); err != nil || slices.Contains(s.calls, "reset") {
				t.Errorf("the next claim gives %v after the calls %v", err, s.calls)
			}
		})
	}
}
