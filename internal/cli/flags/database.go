// Package flags has the flags that several commands share. The package reads their values and opens
// the database, brokers, projections and files that they name.
package flags

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/user"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/cli/exit"
	"projector/readmodel"
)

// DatabaseFlags are the flags of the read model's database. Files, including those in the URL, are
// read again for each new connection.
type DatabaseFlags struct {
	DatabaseURL          string `json:"-" env:"DATABASE_URL" type:"url" placeholder:"URL" group:"PostgreSQL" help:"Where the read model is, e.g. postgres://user@host:5432/bank?sslmode=verify-full. Default: the PG* environment variables."`
	DatabasePasswordFile string `json:"-" env:"DATABASE_PASSWORD_FILE" type:"path" placeholder:"FILE" group:"PostgreSQL" help:"File that holds the password, instead of the URL."`
}

// Database returns f. Generic code checks for this method to find the commands that have these
// flags.
func (f *DatabaseFlags) Database() *DatabaseFlags { return f }

// Pool makes a pool of connections. It does not connect yet.
func (f *DatabaseFlags) Pool(ctx context.Context, more ...readmodel.ConnectOption) (*pgxpool.Pool, error) {
	options, err := f.ConnectOptions()
	if err != nil {
		return nil, err
	}
	pool, err := readmodel.OpenPool(ctx, f.DatabaseURL, append(options, more...)...)
	if err != nil {
		return nil, exit.Usagef("--database-url (DATABASE_URL): %s", errclass.Safe(err))
	}
	return pool, nil
}

// ConnectOptions returns the options of a connection that are not in the URL.
func (f *DatabaseFlags) ConnectOptions() ([]readmodel.ConnectOption, error) {
	password, err := passwordFile("--database-password-file (DATABASE_PASSWORD_FILE)", f.DatabasePasswordFile, "--database-url (DATABASE_URL)", f.DatabaseURL)
	if password == nil {
		return nil, err
	}
	return []readmodel.ConnectOption{readmodel.WithPassword(password)}, nil
}

// passwordFile returns a function that reads the present password from a file, or nil without a file.
// It refuses a URL that also has a password, and a file that cannot be read.
func passwordFile(flag, file, urlFlag, text string) (func() (string, error), error) {
	if file == "" {
		return nil, nil
	}
	if u, err := url.Parse(text); err == nil {
		if _, set := u.User.Password(); set || u.Query().Has("password") {
			return nil, exit.Usagef("%s: %s holds a password too; take it out of there", flag, urlFlag)
		}
	}
	password := func() (string, error) { return FromFile(flag, file) }
	if _, err := password(); err != nil {
		return nil, exit.WrongUsage(err)
	}
	return password, nil
}

// OneShotWithin is how long a one-shot command tries to reach a server.
const OneShotWithin = 25 * time.Second

// OpenDatabase connects to the database and does not check its schema. It fails after
// OneShotWithin.
func OpenDatabase(ctx context.Context, f *DatabaseFlags) (*pgxpool.Pool, error) {
	pool, err := f.Pool(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, OneShotWithin)
	defer cancel()
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("reach PostgreSQL by --database-url (DATABASE_URL): %w", err)
	}
	return pool, nil
}

// OpenReadModel connects to the read model, or fails after OneShotWithin.
func OpenReadModel(ctx context.Context, f *DatabaseFlags) (*pgxpool.Pool, error) {
	ctx, cancel := context.WithTimeout(ctx, OneShotWithin)
	defer cancel()
	pool, err := OpenDatabase(ctx, f)
	if err != nil {
		return nil, err
	}
	if err := readmodel.CheckSchema(ctx, pool); err != nil {
		pool.Close()
		if schema, is := errors.AsType[readmodel.Unfit](err); is {
			return nil, exit.Refuse(schema.Error())
		}
		return nil, err
	}
	return pool, nil
}

// OpenBoth connects to the database and the brokers, or fails after OneShotWithin.
func OpenBoth(ctx context.Context, db *DatabaseFlags, kafka *KafkaFlags, log *slog.Logger) (*pgxpool.Pool, *kgo.Client, error) {
	opts, err := kafka.Client(log)
	if err != nil {
		return nil, nil, err
	}
	db.WarnUnverified(log)
	reachable, cancel := context.WithTimeout(ctx, OneShotWithin)
	defer cancel()
	pool, err := OpenReadModel(reachable, db)
	if err != nil {
		return nil, nil, err
	}
	client, err := OpenKafka(reachable, opts)
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return pool, client, nil
}

// ActorFlags name the person who runs the command.
type ActorFlags struct {
	Actor string `placeholder:"NAME" help:"Who does this, for the audit trail; default user@host."`
}

// ActorName returns the name of the person who runs the command.
func (f *ActorFlags) ActorName() string {
	if f.Actor != "" {
		return readmodel.Storable(f.Actor)
	}
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return readmodel.Storable(name + "@" + host)
}
