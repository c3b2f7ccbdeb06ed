// Package reader serves the state of an account over HTTP. A request may wait until the account has
// reached a version. So a client that has sent an event can read the balance that includes this
// event.
//
//	GET /v1/accounts/{id}?min_version=N&wait=5s
//
//	request ──▶ register ◀── one query a tick, for all waiters together ──▶ PostgreSQL
//	               ▲
//	               └── which accounts this instance has just written
//
// The register decides how each waiter is answered and does no I/O. When a client closes its
// connection, its wait ends.
package reader

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"projector/internal/httplimit"
	"projector/internal/pace"
	"projector/readmodel/accountdb"
)

const (
	// tick is the interval at which the database is queried while a client waits. Each query reads
	// the accounts of new waiters, the accounts of waiters whose time is over, and accounts that
	// this instance has written. Queries for the accounts of all waiters are sent less often,
	// because reading one account costs PostgreSQL 2 µs or more. The pause after such a query is
	// perAccount times the number of accounts, for example 2.5 s for 10,000 accounts.
	tick       = 20 * time.Millisecond
	perAccount = 250 * time.Microsecond
	// queryWithin is the deadline of a query, and queryAgain is the pause after a failed query.
	queryWithin = 2 * time.Second
	queryAgain  = 250 * time.Millisecond

	// maxWaiters is how many clients may wait at the same time. More clients may connect, because
	// they must receive an error as the answer.
	maxWaiters     = 10_000
	maxConnections = maxWaiters + 2_000
	// shareOfFiles permits maxConnections if a process may open 20,000 files.
	shareOfFiles   = 0.625
	maxHeaderBytes = 8 << 10
	// Memory is how many bytes maxWaiters clients need, about 32 KiB each. In a measurement, 10,000
	// clients needed 324 MiB.
	Memory = 320 << 20

	headerWithin = 5 * time.Second
	readWithin   = 10 * time.Second
	answerWithin = maxWait + 10*time.Second
	idleWithin   = time.Minute
)

// Config is the configuration of a Server.
type Config struct {
	Addr string // host:port; port 0 means a free port
	// Load reads accounts from the database. The result does not contain accounts that have neither
	// a row nor a waiting event.
	Load func(ctx context.Context, ids []string) ([]accountdb.Current, error)
	// Token returns the current token, which clients have to send. If Token is nil, clients need no
	// token.
	Token func() (string, error)
	// Balances adds balance, currency and status to the answers.
	Balances bool
	// Queried is called after each query, with its error and the pause before the next query.
	Queried func(err error, next time.Duration)
	Log     *slog.Logger
}

// Server answers requests for accounts.
type Server struct {
	*httplimit.Server
	cfg      Config
	register *register
}

// NewServer makes a server. The caller calls Start and then Run.
func NewServer(cfg Config) *Server {
	s := &Server{cfg: cfg, register: newRegister(maxWaiters)}
	server := &http.Server{
		Addr:              cfg.Addr,
		Handler:           http.HandlerFunc(s.serve),
		ReadHeaderTimeout: headerWithin,
		ReadTimeout:       readWithin,
		WriteTimeout:      answerWithin,
		IdleTimeout:       idleWithin,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	s.Server = httplimit.NewServer(server, httplimit.New(maxConnections, shareOfFiles), func(err error) {
		cfg.Log.Error("readers are no longer served", slog.String("error", err.Error()))
	})
	return s
}

// Changed reports accounts that were just written. The query of the next tick includes the changed
// accounts for which a client waits. Changed is safe for concurrent use.
func (s *Server) Changed(ids iter.Seq[string]) { s.register.changed(ids) }

// Run queries the database regularly while a client waits. When ctx ends, all waiters receive the
// answer that the instance is stopping.
func (s *Server) Run(ctx context.Context) {
	defer s.register.close()
	for {
		select {
		case <-s.register.waiterAdded:
		case <-ctx.Done():
			return
		}
		var all time.Time // time of the next query for the accounts of all waiters
		for s.register.count() > 0 {
			now := time.Now()
			n, err := s.query(ctx, !now.Before(all))
			switch {
			case err != nil:
				all = time.Time{}
			case !now.Before(all):
				all = now.Add(max(tick, time.Duration(n)*perAccount))
			}
			if pace.Sleep(ctx, pauseAfter(err)) != nil {
				return
			}
		}
	}
}

// query sends a query and answers waiters from its result. It queries the accounts of all waiters,
// or only the accounts that are due. It returns the number of accounts that were queried.
func (s *Server) query(ctx context.Context, all bool) (int, error) {
	number, ids := s.register.query(all)
	if len(ids) == 0 {
		return 0, nil
	}
	within, cancel := context.WithTimeout(ctx, queryWithin)
	defer cancel()
	current, err := s.cfg.Load(within, ids)
	if ctx.Err() != nil {
		return 0, err
	}
	if err != nil {
		s.register.failed()
	} else {
		s.register.found(number, ids, current)
	}
	s.cfg.Queried(err, pauseAfter(err))
	return len(ids), err
}

// pauseAfter returns the pause after a query.
func pauseAfter(err error) time.Duration {
	if err != nil {
		return queryAgain
	}
	return tick
}
