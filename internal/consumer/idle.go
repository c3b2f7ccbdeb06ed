package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// restAfter is how long nothing has to arrive until brokers are asked less often.
	restAfter = time.Second
	// idleRest is how long none is asked then. Two requests to each follow.
	idleRest = 240 * time.Millisecond
)

// idle knows when all brokers have been asked for records and had none.
type idle struct {
	mu    sync.Mutex
	asked map[int32]int // fetches by broker; nil: nothing waits for them
	done  func()        // called once
}

var _ kgo.HookBrokerWrite = (*idle)(nil)

// OnBrokerWrite implements kgo.HookBrokerWrite. If a broker is asked again, its last answer
// was empty: the client asks only after its records were polled.
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

// listen has done, which must not wait, called when all brokers that are asked from now on
// have had nothing.
func (i *idle) listen(done func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked, i.done = map[int32]int{}, done
}

// rest has nothing fetched for a while, when nothing has arrived for long: an instance
// without work would ask each broker 100 times a second. A seek ends it, and so does ctx.
// It returns the context of the next poll, which ends when all brokers had nothing.
func (c *Consumer) rest(ctx context.Context) (context.Context, context.CancelFunc) {
	c.cl.PauseFetchTopics(c.cfg.Topic)
	c.untilSeek(ctx, idleRest)
	pollCtx, cancel := c.beginPoll(ctx)
	c.idle.listen(cancel)
	c.cl.ResumeFetchTopics(c.cfg.Topic)
	return pollCtx, cancel
}

// untilSeek waits for a time, or until a seek is asked for.
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
