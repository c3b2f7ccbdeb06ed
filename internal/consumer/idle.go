package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// restAfter is the time without a new record after which the fetches become less frequent.
	restAfter = time.Second
	// idleRest is the pause in which no broker is asked for records. After the pause, each broker
	// normally gets at least two requests.
	idleRest = 240 * time.Millisecond
)

// idle detects when the brokers that were asked for records had none.
type idle struct {
	mu    sync.Mutex
	asked map[int32]int // number of fetches by broker; nil if done is not set or was called
	done  func()        // called at most once
}

var _ kgo.HookBrokerWrite = (*idle)(nil)

// OnBrokerWrite implements kgo.HookBrokerWrite. A second fetch to the same broker means that the
// first fetch returned no records. If it had returned records, the client would not ask this broker
// again before they are polled.
func (i *idle) OnBrokerWrite(b kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if key != kmsg.Fetch.Int16() || err != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.asked == nil {
		return
	}
	i.asked[b.NodeID]++
	for _, n := range i.asked {
		if n < 2 {
			return
		}
	}
	i.asked = nil
	i.done()
}

// listen sets the function done, which must not block. It is called when the brokers that were
// asked after this call had no records.
func (i *idle) listen(done func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked, i.done = map[int32]int{}, done
}

// rest pauses fetching for a short time, because no record has arrived for some time. Without the
// pause, an instance without work would ask each broker up to 100 times per second. A seek or the
// end of ctx ends the pause. The returned context is for the next poll. It ends early if the
// brokers that were asked had no records.
func (c *Consumer) rest(ctx context.Context) (context.Context, context.CancelFunc) {
	c.cl.PauseFetchTopics(c.cfg.Topic)
	c.untilSeek(ctx, idleRest)
	pollCtx, cancel := c.beginPoll(ctx)
	c.idle.listen(cancel)
	c.cl.ResumeFetchTopics(c.cfg.Topic)
	return pollCtx, cancel
}

// untilSeek waits until a worker requests a seek, but at most for the duration within.
func (c *Consumer) untilSeek(ctx context.Context, within time.Duration) {
	c.seeksMu.Lock()
	if len(c.seeks) > 0 {
		within = 0
	}
	waiting, cancel := c.interruptible(ctx, within)
	c.seeksMu.Unlock()
	defer cancel()
	<-waiting.Done()
}
