// Package telemetry has the metrics, the health, the log, and the HTTP server for metrics and
// health.
//
// It does not depend on Kafka records, accounts or SQL. Other packages report to it through small
// interfaces, which those packages declare:
//
//	consumer ──▶ Metrics ──▶ Registry ──┐
//	    │                               ├──▶ Server: /metrics /livez /readyz / /status.json
//	    └──────▶ Health ────────────────┘
//
// Ready means that the assigned partitions make progress. For example, an instance is unready while
// its database is down. Alive means that a restart would not help. If the poll loop does not run
// any more, the instance is not alive.
//
// Callers must not pass payload, amounts or credentials to this package.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"projector/internal/httplimit"
)

// Server answers /livez, /readyz, /metrics, /status.json and /history.json, and serves the status
// page and the documentation pages. No request changes anything. The server accepts only GET and
// HEAD.
type Server struct {
	addr     string
	log      *slog.Logger
	http     *http.Server
	listener net.Listener
	served   chan struct{} // closed when the serving goroutine has ended
}

// maxConnections is much more than probes, scrapes and people need.
const maxConnections = 500

// NewServer creates a server for addr (host:port; port 0 means a free port).
func NewServer(addr string, reg *Registry, h *Health, page Page, log *slog.Logger) *Server {
	pages := &pages{Page: page, health: h, log: log}
	return &Server{
		addr:   addr,
		log:    log,
		served: make(chan struct{}),
		http: &http.Server{
			Handler: secureHeaders(pages.routes(metricsHandler(reg, log))),
			// Probes and scrapes are small. A client that needs more time is stuck, and must not
			// occupy a connection.
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       10 * time.Second,
			WriteTimeout:      30 * time.Second,
			IdleTimeout:       2 * time.Minute, // longer than the usual scrape interval
			MaxHeaderBytes:    16 << 10,
			ConnState:         httplimit.New(maxConnections, 0.25).State,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}
}

// Start listens and serves in the background. It returns an error if it cannot listen on the
// address. Start must be called only one time.
func (s *Server) Start(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.addr)
	if err != nil {
		return fmt.Errorf("cannot listen for HTTP on %q (--listen): %w", s.addr, err)
	}
	s.listener = listener
	go s.serve()
	return nil
}

func (s *Server) serve() {
	defer close(s.served)
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		s.log.Error("the HTTP server has ended", Err(err))
	}
}

// Addr returns the address that the server listens on, for example "127.0.0.1:43121". Before Start
// it returns the configured address.
func (s *Server) Addr() string {
	if s.listener == nil {
		return s.addr
	}
	return s.listener.Addr().String()
}

// Shutdown stops listening and waits for running requests until ctx ends. Then it closes their
// connections. Shutdown does nothing if Start was not called.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.listener == nil {
		return nil
	}
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.served
	return err
}

// policy permits only what the status page needs from this server. It permits no inline script or
// style, no other host, and no frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// secureHeaders sets headers for security. A page may load files only from this server and must not
// be in a frame. By default, an answer may not be cached, because it is soon outdated.
func secureHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}
