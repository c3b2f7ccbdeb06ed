package registry

import (
	"context"
	"sync"
	"time"

	"projector/internal/pace"
)

const (
	// freeTurns is how many ids in a row may be unreadable before requests are delayed.
	freeTurns = 100
	// betweenTurns is the time between two requests while requests are delayed.
	betweenTurns = 10 * time.Millisecond
)

// turns delays requests when many ids in a row are unreadable. In a topic without valid events each
// value may contain another id, and the requests for them would slow the registry for other
// services.
type turns struct {
	mu    sync.Mutex
	inRow int       // unreadable ids since the last readable one
	next  time.Time // when the next request may be made
}

// await waits until the next request may be sent.
func (t *turns) await(ctx context.Context) error {
	t.mu.Lock()
	var wait time.Duration
	if t.inRow >= freeTurns {
		wait = max(time.Until(t.next), 0)
		t.next = time.Now().Add(wait + betweenTurns)
	}
	t.mu.Unlock()
	return pace.Sleep(ctx, wait)
}

func (t *turns) unreadable() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inRow++
}

// restart is called after a readable id. The next requests are not delayed, until freeTurns ids in
// a row are unreadable again.
func (t *turns) restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inRow = 0
}
