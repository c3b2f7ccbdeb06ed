// Package httplimit has an HTTP server that limits its connections.
package httplimit

import (
	"container/list"
	"net"
	"net/http"
	"sync"
	"syscall"
)

// Connections limits the number of connections of a server. Above the limit, the connection that
// has waited longest for a request is closed. So clients that send nothing cannot block others.
type Connections struct {
	most int

	mu      sync.Mutex
	open    map[net.Conn]*list.Element // nil while a request is being answered
	waiting *list.List                 // connections without a request; the first waits longest
}

// New returns a limit of the given number of connections. The limit is also at most a share of the
// files that the process may open, because connections to brokers and to the database need files
// too.
func New(most int, share float64) *Connections {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) == nil {
		most = limitByFiles(most, share, files.Cur)
	}
	return &Connections{most: max(most, 1), open: map[net.Conn]*list.Element{}, waiting: list.New()}
}

// limitByFiles returns the parameter most, or the given share of the files if that share is
// smaller.
func limitByFiles(most int, share float64, files uint64) int {
	return int(min(float64(most), share*float64(files)))
}

// State must be set as http.Server.ConnState. NewServer does this.
func (c *Connections) State(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if place := c.open[conn]; place != nil {
		c.waiting.Remove(place)
	}
	switch state {
	case http.StateNew, http.StateIdle:
		c.open[conn] = c.waiting.PushBack(conn)
	case http.StateActive:
		c.open[conn] = nil
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
	if state == http.StateNew && len(c.open) > c.most {
		longest, _ := c.waiting.Remove(c.waiting.Front()).(net.Conn)
		delete(c.open, longest)
		_ = longest.Close()
	}
}
