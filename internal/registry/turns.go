package registry

import (
	"context"
	"sync"
	"time"

	"projector/internal/pace"
)

const (
	// freeTurns is how many ids in a row may be unreadable before requests are spaced.
	freeTurns = 100
	// betweenTurns is the time between two requests from then on.
	betweenTurns = 10 * time.Millisecond
)

// turns spaces the requests for ids while one after the other is unreadable: a topic of
// nonsense names another id in each value, and the registry is there for others too.
type turns struct {
	mu    sync.Mutex
	inRow int       // unreadable ids since one was readable
	next  time.Time // when the next request may be made
}

// await waits for the turn of a request.
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

// unreadable notes that an id was unreadable.
func (t *turns) unreadable() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inRow++
}

// restart notes that an id was readable.
func (t *turns) restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inRow = 0
}
