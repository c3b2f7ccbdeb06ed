package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// restAfter is the time without new records after which brokers are asked less often.
	restAfter = time.Second
	// idleRest is how long no broker is asked then. After that, each broker gets two requests.
	idleRest = 240 * time.Millisecond
)

// idle detects that all brokers were asked for records and had none.
type idle struct {
	mu    sync.Mutex
	asked map[int32]int // number of fetches by broker; nil: nobody listens
	done  func()        // called once
}

var _ kgo.HookBrokerWrite = (*idle)(nil)

// OnBrokerWrite implements kgo.HookBrokerWrite. A second fetch from a broker means that the
// first returned no records: otherwise the client would wait until its records are polled.
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

// listen sets done, which is called when all brokers asked from now on had no records. done
// must not wait.
func (i *idle) listen(done func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked, i.done = map[int32]int{}, done
}

// rest pauses fetching for a while if no record has arrived for long. Otherwise an instance
// without work would ask each broker 100 times a second. A seek or the end of ctx ends the
// rest. rest returns the context of the next poll, which ends when all brokers had no records.
func (c *Consumer) rest(ctx context.Context) (context.Context, context.CancelFunc) {
	c.cl.PauseFetchTopics(c.cfg.Topic)
	c.untilSeek(ctx, idleRest)
	pollCtx, cancel := c.beginPoll(ctx)
	c.idle.listen(cancel)
	c.cl.ResumeFetchTopics(c.cfg.Topic)
	return pollCtx, cancel
}

// untilSeek waits until the time is over or a worker asks for a seek.
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
