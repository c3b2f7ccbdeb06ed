// Package reader answers how an account stands, over HTTP, and waits until it has reached a
// version: for who has just sent an event and wants to read what it has made of the balance.
//
//	GET /v1/accounts/{id}?min_version=N&wait=5s
//
//	request ──▶ register ◀── what this instance has committed
//	               │ ▲
//	               ▼ │ one question a tick, for all waiters together
//	            PostgreSQL
//
// The register decides what each waiter is told and does no I/O; the server is HTTP, and the
// questions are one statement. Waiting costs the database no more than that, and a client that
// goes away nothing: its request ends, and with it the wait.
package reader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"projector/internal/httplimit"
	"projector/internal/pace"
	"projector/readmodel"
)

const (
	// tick is how often the database is asked while anybody waits, and crowdTick while more
	// wait than one question asks for: half of what one costs is the same for any number of
	// accounts.
	tick      = 20 * time.Millisecond
	crowdTick = 30 * time.Millisecond
	// size is how many accounts a question asks for. Those to be asked for at once come first,
	// however many. The rest of it, and at least so much, are accounts that wait on: they are
	// told by what this instance writes, and so are in a hurry only where another instance, or
	// a repair, writes them.
	size   = 24
	others = 4
	// askWithin is the deadline of a question, and askAgain when it is put again that failed.
	askWithin = 2 * time.Second
	askAgain  = 250 * time.Millisecond

	// maxWaiters is how many may wait at once, and maxConnections how many may be connected:
	// who is one too many to wait is to be told so.
	maxWaiters     = 10_000
	maxConnections = maxWaiters + 2_000
	maxHeaderBytes = 8 << 10
	// Memory is what so many take, each some 32 KiB of buffers and stacks. Measured: 324 MiB
	// with 10,000.
	Memory = 320 << 20

	headerWithin = 5 * time.Second
	readWithin   = 10 * time.Second
	answerWithin = maxWait + 10*time.Second
	idleWithin   = time.Minute
)

// Config is what a Server needs.
type Config struct {
	Addr string // host:port; port 0 takes a free one
	// Load reads accounts; those of which nothing is known are left out.
	Load func(ctx context.Context, ids []string) ([]readmodel.Current, error)
	// Token is what clients have to send, as it is now; nil: nothing.
	Token func() (string, error)
	// Balances: answers have balance, currency and status in them.
	Balances bool
	// Asked is told what came of each question, and when the next one is put.
	Asked func(err error, next time.Duration)
	Log   *slog.Logger
}

// Server serves readers.
type Server struct {
	cfg      Config
	register *register
	http     *http.Server
	listener net.Listener
	served   chan struct{} // closed when the serving goroutine has ended
}

// NewServer makes a server. Start comes next, and Run.
func NewServer(cfg Config) *Server {
	s := &Server{cfg: cfg, register: newRegister(maxWaiters), served: make(chan struct{})}
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: headerWithin,
		ReadTimeout:       readWithin,
		WriteTimeout:      answerWithin,
		IdleTimeout:       idleWithin,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         httplimit.New(maxConnections, 2).State,
		ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	return s
}

// Readers are the server's waiters, to be told what is committed.
func (s *Server) Readers() readmodel.Readers { return s.register }

// Start listens and serves in the background. It is called once.
func (s *Server) Start(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.Addr)
	if err != nil {
		return fmt.Errorf("cannot listen for readers on %q: %w", s.cfg.Addr, err)
	}
	s.listener = listener
	go func() {
		defer close(s.served)
		if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
			s.cfg.Log.Error("readers are no longer served", slog.String("error", err.Error()))
		}
	}()
	return nil
}

// Addr is the bound address, once Start has returned.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Run puts the questions, one a tick while anybody waits, until ctx ends. From then on
// everybody is told that the instance stops.
func (s *Server) Run(ctx context.Context) {
	defer s.register.close()
	for {
		select {
		case <-s.register.somebody:
		case <-ctx.Done():
			return
		}
		for s.register.Waiting() {
			if pace.Sleep(ctx, s.ask(ctx)) != nil {
				return
			}
		}
	}
}

// ask puts a question, and returns how long to wait before the next.
func (s *Server) ask(ctx context.Context) time.Duration {
	q := s.register.take(size, others)
	within, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	current, err := s.cfg.Load(within, q.ids)
	if ctx.Err() != nil {
		return 0
	}
	next := tick
	if q.crowd {
		next = crowdTick
	}
	if err != nil {
		next = askAgain
		s.register.failed(q)
	} else {
		s.register.found(q, current)
	}
	s.cfg.Asked(err, next)
	return next
}

// Shutdown stops listening and waits for running requests until ctx ends, then cuts them off.
// Without Start it does nothing.
func (s *Server) Shutdown(ctx context.Context) {
	if s.listener == nil {
		return
	}
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	<-s.served
}
