package readmodel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/readmodel/citus"
)

const (
	// maxConns bounds the connections of one process, unless the URL does by
	// pool_max_conns. Partitions share them: a transaction is short, and more of them at
	// once than PostgreSQL has cores to serve only adds contention.
	maxConns = 10
	// leastConns is what a rebuild needs: it holds one for as long as it lasts, compares
	// in a transaction on another, and writes down what it finds on a third.
	leastConns = 4
)

// sessionDefaults are set on every connection unless the URL says otherwise. They
// keep a server-side session from outliving the attempt it was made for: a process
// frozen in the middle of a transaction must not keep its row locks.
var sessionDefaults = map[string]string{
	"application_name":                    "projector",
	"idle_in_transaction_session_timeout": "20s",
	"lock_timeout":                        "5s",
	"statement_timeout":                   "60s",
	// Accounts are always looked up by their key. A plan made while the table was
	// small would scan it whole, and would be kept when it has grown.
	"plan_cache_mode": "force_generic_plan",
	"enable_seqscan":  "off",
}

// connector makes the settings of connections, again for each: what they name in
// files (certificates, keys, .pgpass) may have changed since the last one.
type connector struct {
	url      string
	password func() (string, error)
	tracer   pgx.QueryTracer // nil: none
	conns    int32           // at most; 0: as the URL says
}

// ConnectOption is a setting of connections that is not in their URL.
type ConnectOption func(*connector)

// WithPassword asks for the password before each new connection, so that it may
// change. An error of it is an error of the connection.
func WithPassword(password func() (string, error)) ConnectOption {
	return func(c *connector) { c.password = password }
}

// WithTracer has a tracer called for each statement, and for all else it has methods for.
func WithTracer(tracer pgx.QueryTracer) ConnectOption {
	return func(c *connector) { c.tracer = tracer }
}

// WithConns bounds the connections, whatever the URL says.
func WithConns(n int32) ConnectOption {
	return func(c *connector) { c.conns = n }
}

func newConnector(url string, options []ConnectOption) *connector {
	c := &connector{url: url}
	for _, option := range options {
		option(c)
	}
	return c
}

// config reads the settings as they are now.
func (c *connector) config() (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(c.url)
	if err != nil || c.password == nil {
		return cfg, err
	}
	cfg.ConnConfig.Password, err = c.password()
	return cfg, err
}

// refresh renews the secrets of a connection that is about to be made.
func (c *connector) refresh(_ context.Context, conn *pgx.ConnConfig) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	fresh := cfg.ConnConfig
	conn.Password, conn.TLSConfig, conn.Fallbacks = fresh.Password, fresh.TLSConfig, fresh.Fallbacks
	return nil
}

// bound is how many connections there may be: what the URL says, and has been parsed to.
func (c *connector) bound(parsed int32) (int32, error) {
	if c.conns > 0 {
		return c.conns, nil
	}
	settings, err := pgconn.ParseConfig(c.url)
	if err != nil {
		return 0, err
	}
	switch _, named := settings.RuntimeParams["pool_max_conns"]; {
	case !named:
		return maxConns, nil
	case parsed < leastConns:
		return 0, errTooFewConns
	default:
		return parsed, nil
	}
}

var (
	errTooFewConns = errors.New("pool_max_conns: fewer than four connections are too few for repairs and rebuilds")
	errTextOnly    = errors.New("default_query_exec_mode: values are sent and read in binary; use cache_statement, cache_describe or describe_exec")
)

// OpenPool prepares a connection pool. It does not connect: the error is about the
// URL. An empty URL means the PG* environment variables.
func OpenPool(ctx context.Context, url string, options ...ConnectOption) (*pgxpool.Pool, error) {
	c := newConnector(url, options)
	cfg, err := c.config()
	if err != nil {
		return nil, err
	}
	if mode := cfg.ConnConfig.DefaultQueryExecMode; mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol {
		return nil, errTextOnly
	}
	cfg.BeforeConnect = c.refresh
	cfg.ConnConfig.Tracer = c.tracer
	_, planned := cfg.ConnConfig.RuntimeParams["plan_cache_mode"]
	for name, value := range sessionDefaults {
		if _, set := cfg.ConnConfig.RuntimeParams[name]; !set {
			cfg.ConnConfig.RuntimeParams[name] = value
		}
	}
	if cfg.ConnConfig.ConnectTimeout == 0 {
		cfg.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	// A frozen backend must not hold up the one who asks for a connection.
	cfg.PingTimeout = 500 * time.Millisecond
	if cfg.MaxConns, err = c.bound(cfg.MaxConns); err != nil {
		return nil, err
	}
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		RegisterColumns(conn.TypeMap())
		return citus.BeginSession(ctx, conn, planned)
	}
	cfg.MaxConnIdleTime = 5 * time.Minute
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connection pool: %w", err)
	}
	return pool, nil
}
