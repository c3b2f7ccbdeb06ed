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
	"log/slog"
	"net/http"
	"time"

	"projector/internal/httplimit"
)

// Server answers /livez, /readyz, /metrics, /status.json and /history.json, and serves the status
// page and the documentation pages. No request changes anything. The server accepts only GET and
// HEAD.
type Server struct{ *httplimit.Server }

// maxConnections is much more than probes, scrapes and people need.
const maxConnections = 500

// NewServer creates a server for addr (host:port; port 0 means a free port).
func NewServer(addr string, reg *Registry, h *Health, page Page, log *slog.Logger) *Server {
	pages := &pages{Page: page, health: h, log: log}
	server := &http.Server{
		Addr:    addr,
		Handler: secureHeaders(pages.routes(metricsHandler(reg, log))),
		// Probes and scrapes are small. A client that needs more time is stuck, and must not
		// occupy a connection.
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute, // longer than the usual scrape interval
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	ended := func(err error) { log.Error("the HTTP server has ended", Err(err)) }
	return &Server{httplimit.NewServer(server, httplimit.New(maxConnections, 0.25), ended)}
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
