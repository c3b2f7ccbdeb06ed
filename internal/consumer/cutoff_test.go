package consumer

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/retry"
	"projector/internal/session"
)

// network connects to brokers, except to those that a test has cut off.
type network struct {
	mu    sync.Mutex
	off   string // the address that cannot be reached
	conns []net.Conn
}

func (n *network) dial(ctx context.Context, kind, addr string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if addr == n.off {
		return nil, errors.New("no route to host")
	}
	conn, err := new(net.Dialer).DialContext(ctx, kind, addr)
	if err == nil {
		n.conns = append(n.conns, conn)
	}
	return conn, err
}

// cutOff closes the connections to an address, and refuses new ones. An empty address ends this.
func (n *network) cutOff(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.off = addr
	for _, conn := range n.conns {
		if conn.RemoteAddr().String() == addr {
			_ = conn.Close()
		}
	}
}

// TestALeaderThatOnlyThisClientCannotReach shows that the instance is unready if it cannot reach the
// leader of a partition although the other brokers can. The brokers then report no error, and the
// client repeats its fetches without an error. So the partition looks idle, and its lag stays at 0.
func TestALeaderThatOnlyThisClientCannotReach(t *testing.T) {
	t.Parallel()
	cluster, all := startFake(t, 2, 2)
	working := cluster.CoordinatorFor("g")
	away := cluster.ListenAddrs()[1-working]
	for partition, leader := range []int32{working, 1 - working} {
		if err := cluster.MoveTopicPartition("t", int32(partition), leader); err != nil {
			t.Fatal(err)
		}
	}
	produceToEach(t, all, 2)
	h, n := &healthLog{}, &network{}
	c := scriptedConsumer(t, agreeing(2), func(cfg *Config) {
		cfg.Client = []kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()[working]), kgo.Dialer(n.dial)}
		cfg.Health = h
		cfg.Open = func(int32) session.Projection { return pending(0) }
		cfg.Retry = retry.Policy{Initial: 50 * time.Millisecond, Max: time.Second, Attempt: 10 * time.Second}
	})
	await, done := runFor(t, c, 3*time.Minute)
	await("both partitions are consumed", func() bool { return positionOf(c, 0) == 1 && positionOf(c, 1) == 1 })
	n.cutOff(away)
	produceToEach(t, all, 2)
	await("the other partition is consumed", func() bool { return positionOf(c, 0) == 2 })
	await("the instance is unready", func() bool { return h.count(0, "soon partition t/1 log") > 0 })
	if h.count(0, "soon partition t/0 log") > 0 {
		t.Error("a partition whose leader answers makes the instance unready")
	}
	from := h.length()
	n.cutOff("")
	await("the leader answers again", func() bool { return h.count(from, "ok partition t/1 log") > 0 })
	await("all is consumed", func() bool { return positionOf(c, 1) == 2 })
	done()
}

// TestAnInstanceThatCannotJoinIsUnready shows that an instance stays unready until it is a member of
// the group. The brokers answer requests for metadata, but the group has no coordinator. The client
// returns an error only every half a minute.
func TestAnInstanceThatCannotJoinIsUnready(t *testing.T) {
	t.Parallel()
	cluster, seeds := startFake(t, 1, 1)
	produceToEach(t, seeds, 1)
	away := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Err: kerr.CoordinatorNotAvailable, Count: -1})
	h := &healthLog{}
	c := scriptedConsumer(t, agreeing(1), func(cfg *Config) { cfg.Client, cfg.Health = []kgo.Opt{seeds}, h })
	await, done := runFor(t, c, 3*time.Minute)
	await("the brokers answer", func() bool { return h.count(0, "ok kafka") > 2 })
	if h.count(0, "soon fetch") == 0 || h.count(0, "ok fetch") > 0 {
		t.Error("ready, although the instance cannot join the group")
	}
	away.Remove()
	await("the record is consumed", func() bool { return positionOf(c, 0) == 1 })
	await("the instance is ready", func() bool { return h.count(0, "ok fetch") > 0 })

	// The member is removed from the group, and cannot join it again.
	removed := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Err: kerr.UnknownMemberID, Count: -1})
	away = cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.JoinGroup}, Err: kerr.CoordinatorNotAvailable, Count: -1})
	await("the partition is lost", func() bool { return len(c.Status()) == 0 && c.fetchFailedAt.Load() != nil })
	c.fetchFailedAt.Store(new(time.Now().Add(-time.Hour))) // the client returns no further error for a long time
	from := h.length()
	await("the brokers answer", func() bool { return h.count(from, "ok kafka") > 2 })
	if h.count(from, "ok fetch") > 0 {
		t.Error("ready again, although the instance is no member of the group")
	}
	removed.Remove()
	away.Remove()
	await("the instance is ready again", func() bool { return h.count(from, "ok fetch") > 0 })
	done()
}

// TestAnInstanceWithoutCommittedOffsetsIsUnready shows that an instance is not ready while the group's
// coordinator does not return the committed offsets of its partitions. The client requests them
// again for half a minute, and then joins the group again.
func TestAnInstanceWithoutCommittedOffsetsIsUnready(t *testing.T) {
	t.Parallel()
	cluster, seeds := startFake(t, 1, 1)
	produceToEach(t, seeds, 1)
	away := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetFetch}, Err: kerr.CoordinatorLoadInProgress, Count: -1})
	h := &healthLog{}
	c := scriptedConsumer(t, agreeing(1), func(cfg *Config) { cfg.Client, cfg.Health = []kgo.Opt{seeds}, h })
	await, done := runFor(t, c, 3*time.Minute)
	await("the partition is assigned", func() bool { return c.worker(0) != nil })
	from := h.length()
	await("the brokers answer", func() bool { return h.count(from, "ok kafka") > 2 })
	if h.count(0, "ok fetch") > 0 {
		t.Error("ready, although the partition cannot be claimed")
	}
	away.Remove()
	await("the record is consumed", func() bool { return positionOf(c, 0) == 1 })
	await("the instance is ready", func() bool { return h.count(from, "ok fetch") > 0 })
	done()
}

// TestANewPartitionWithoutItsOffset expects that an instance that is ready becomes unready if the
// committed offset of a partition that was just assigned is not returned.
func TestANewPartitionWithoutItsOffset(t *testing.T) {
	t.Parallel()
	_, seeds := startFake(t, 1, 1)
	h := &healthLog{}
	c := scriptedConsumer(t, &script{}, func(cfg *Config) { cfg.Health = h })
	connect(t, c, seeds)
	close(c.ready)
	c.joinedAt.Store(new(time.Now()))
	c.assigned(t.Context(), c.cl, map[string][]int32{"t": {0}})
	defer c.release(t.Context(), []int32{0}, true)
	c.noteFetching()
	if h.count(0, "soon fetch") != 1 || h.count(0, "ok fetch") != 0 {
		t.Errorf("before the offset is known: %q", h.reported)
	}
	if _, err := c.offsetsFetched(t.Context(), map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset()}}); err != nil {
		t.Error(err)
	}
	c.noteFetching()
	if h.count(0, "ok fetch") != 1 {
		t.Errorf("after that: %q", h.reported)
	}
}

// lateStart starts only after the client has assigned the partition.
type lateStart struct {
	*healthLog
	assigned func()
}

func (h lateStart) Started() { h.assigned() }

// TestAMemberThatJoinsAtOnceIsReady shows that an instance becomes ready even if the client joins the
// group before the consumer has finished its own start.
func TestAMemberThatJoinsAtOnceIsReady(t *testing.T) {
	t.Parallel()
	_, seeds := startFake(t, 1, 1)
	h := &healthLog{}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var c *Consumer
	late := lateStart{h, func() { awaitOn(ctx, t, c, "the partition is assigned", func() bool { return c.worker(0) != nil }) }}
	c = scriptedConsumer(t, agreeing(1), func(cfg *Config) { cfg.Client, cfg.Health = []kgo.Opt{seeds}, late })
	await, done := runFor(t, c, 3*time.Minute)
	await("the instance is ready", func() bool { return h.count(0, "ok fetch") > 0 })
	done()
}

// runFor runs a consumer until the function done is called, or until the duration within has passed.
// The function await waits until holds returns true.
func runFor(t *testing.T, c *Consumer, within time.Duration) (await func(what string, holds func() bool), done func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	await = func(what string, holds func() bool) {
		t.Helper()
		awaitOn(ctx, t, c, what, holds)
	}
	return await, func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// positionOf returns the durable position of a partition, or -1 if it is not assigned.
func positionOf(c *Consumer, partition int32) int64 {
	for _, p := range c.Status() {
		if p.Partition == partition {
			return p.Position
		}
	}
	return -1
}

func (h *healthLog) length() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.reported)
}
