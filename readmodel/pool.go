package readmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/readmodel/citus"
	"projector/sql"
)

const (
	// maxConns limits the connections of a pool, unless the URL has pool_max_conns or WithConns is
	// used. Partitions share the connections. Transactions are short, and more concurrent
	// transactions than PostgreSQL has cores would mostly wait for each other.
	maxConns = 10
	// leastConns is the smallest pool_max_conns that is accepted. The comparison of a rebuild uses
	// four connections: one holds the lock, two run the transactions that compare, and one stores
	// the differences.
	leastConns = 4
)

// sessionDefaults are set on each connection of a pool, unless the URL has other values. The
// timeouts end a session on the server, because a process that is frozen in a transaction must not
// keep its row locks.
var sessionDefaults = map[string]string{
	"application_name":                    "projector",
	"idle_in_transaction_session_timeout": "20s",
	"lock_timeout":                        "5s",
	"statement_timeout":                   "60s",
	// Consumers look up accounts by their keys. Without these settings, PostgreSQL would plan a
	// scan of a small table, and would still use this plan after the table has grown.
	"plan_cache_mode": "force_generic_plan",
	"enable_seqscan":  "off",
}

// fixed are set on each connection to PostgreSQL. They override settings of the URL, the role and
// the database. The program sends and reads UTF-8. With another client_encoding, PostgreSQL would
// store other characters, and would refuse to send some. The program's statements have no escapes
// with a backslash, so they need standard_conforming_strings. PgBouncer accepts both parameters.
var fixed = map[string]string{"client_encoding": "UTF8", "standard_conforming_strings": "on"}

// fixSession sets the parameters of a connection that must not depend on the login.
func fixSession(conn *pgx.ConnConfig) { maps.Copy(conn.RuntimeParams, fixed) }

// Connect opens a single connection, for example to the ledger. CloseReading closes it.
func Connect(ctx context.Context, cfg *pgx.ConnConfig) (*pgx.Conn, error) {
	fixSession(cfg)
	limitConnect(cfg)
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := checkPath(ctx, conn); err != nil {
		CloseReading(conn)
		return nil, err
	}
	return conn, nil
}

// limitConnect sets the time limit of a connection attempt, unless the URL has one.
func limitConnect(cfg *pgx.ConnConfig) {
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, 5*time.Second)
}

// CloseReading closes a connection that was only read from. So an error does not matter.
func CloseReading(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// connector makes the settings of a connection. It reads them again for each connection, because
// files (certificates, keys, .pgpass) may have changed.
type connector struct {
	url      string
	password func() (string, error)
	tracer   pgx.QueryTracer // may be nil
	conns    int32           // the most connections; 0 means the limit in the URL
}

// ConnectOption is a setting that is not part of the URL.
type ConnectOption func(*connector)

// WithPassword calls password before each new connection, so that the password may change. If
// password returns an error, the connection attempt fails with this error.
func WithPassword(password func() (string, error)) ConnectOption {
	return func(c *connector) { c.password = password }
}

// WithTracer sets a tracer for statements. Other operations are also traced if the tracer has
// methods for them.
func WithTracer(tracer pgx.QueryTracer) ConnectOption {
	return func(c *connector) { c.tracer = tracer }
}

// WithConns limits the connections. This limit overrides the URL.
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

func (c *connector) config() (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(c.url)
	if err != nil {
		return nil, err
	}
	fixSession(cfg.ConnConfig)
	if c.password == nil {
		return cfg, nil
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

// bound returns the maximum number of connections in the pool. The parameter parsed is the value
// that pgx read from the URL.
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

// errOtherPath means that a session does not have the search_path that was requested for it.
const errOtherPath errclass.Text = "the session has another search_path than the one that was requested, so it would use the tables of another schema: " +
	"connect to PostgreSQL directly, or take search_path out of the pooler's ignore_startup_parameters"

// checkPath returns errOtherPath if the session does not have the requested search_path. Some
// poolers ignore the request. The events of one read model would then be written to the tables of
// another one, and those of a rebuild to the live tables.
func checkPath(ctx context.Context, conn *pgx.Conn) error {
	wanted, requested := requestedPath(conn.Config().RuntimeParams)
	if !requested {
		return nil
	}
	var path string
	err := conn.QueryRow(ctx, sql.Query("search_path")).Scan(&path)
	if err == nil && path != wanted {
		err = errOtherPath
	}
	return err
}

// pathOption finds a search_path in the parameter options, such as "-c search_path=bank". A
// backslash is before each white space or backslash of the value.
var (
	pathOption = regexp.MustCompile(`(?i)(?:^|\s)(?:-c\s*|--)search[_-]path=((?:\\.|[^\s\\])*)`)
	escaped    = regexp.MustCompile(`\\(.)`)
)

// requestedPath returns the search_path that the parameters of a connection request.
func requestedPath(params map[string]string) (path string, requested bool) {
	if path, requested = params["search_path"]; requested {
		return path, true
	}
	all := pathOption.FindAllStringSubmatch(params["options"], -1)
	if len(all) == 0 {
		return "", false
	}
	return escaped.ReplaceAllString(all[len(all)-1][1], "$1"), true // the last option counts
}

var (
	errTooFewConns = errors.New("pool_max_conns: fewer than four connections are too few for repairs and rebuilds")
	errTextOnly    = errors.New("default_query_exec_mode: values are sent and read in binary; use cache_statement, cache_describe or describe_exec")
)

// OpenPool prepares a connection pool. It does not connect, so an error is about the URL or the
// password. With an empty URL, the PG* environment variables are used.
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
	limitConnect(cfg.ConnConfig)
	// A frozen backend delays a caller who acquires a connection only for this time.
	cfg.PingTimeout = 500 * time.Millisecond
	if cfg.MaxConns, err = c.bound(cfg.MaxConns); err != nil {
		return nil, err
	}
	cfg.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		RegisterColumns(conn.TypeMap())
		if err := checkPath(ctx, conn); err != nil {
			return err
		}
		return citus.BeginSession(ctx, conn, planned)
	}
	cfg.MaxConnIdleTime = 5 * time.Minute
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connection pool: %w", err)
	}
	return pool, nil
}
