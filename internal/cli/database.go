package cli

import (
	"context"
	"net/url"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/readmodel"
)

// databaseFlags say where the read model is. Files, also those the URL names, are
// read again for each new connection.
type databaseFlags struct {
	DatabaseURL          string `env:"DATABASE_URL" placeholder:"URL" group:"PostgreSQL" help:"Where the read model is, e.g. postgres://user@host:5432/bank?sslmode=verify-full. Default: the PG* environment variables."`
	DatabasePasswordFile string `env:"DATABASE_PASSWORD_FILE" type:"path" placeholder:"FILE" group:"PostgreSQL" help:"File that holds the password, instead of the URL."`
}

func (f *databaseFlags) pool(ctx context.Context, more ...readmodel.ConnectOption) (*pgxpool.Pool, error) {
	options, err := f.connect()
	if err != nil {
		return nil, err
	}
	pool, err := readmodel.OpenPool(ctx, f.DatabaseURL, append(options, more...)...)
	if err != nil {
		return nil, badDatabaseURL(err)
	}
	return pool, nil
}

const passwordFileFlag = "--database-password-file (DATABASE_PASSWORD_FILE)"

// connect is what the URL does not say about a connection.
func (f *databaseFlags) connect() ([]readmodel.ConnectOption, error) {
	if f.DatabasePasswordFile == "" {
		return nil, nil
	}
	if holdsPassword(f.DatabaseURL) {
		return nil, usagef("%s: --database-url (DATABASE_URL) holds a password too; take it out of there", passwordFileFlag)
	}
	if _, err := f.password(); err != nil {
		return nil, usageError{err}
	}
	return []readmodel.ConnectOption{readmodel.WithPassword(f.password)}, nil
}

// holdsPassword reports whether a PostgreSQL URL has a password in it.
func holdsPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	_, set := u.User.Password()
	return set || u.Query().Has("password")
}

// password is the password as it is now.
func (f *databaseFlags) password() (string, error) {
	return fromFile(passwordFileFlag, f.DatabasePasswordFile)
}

// badDatabaseURL names the flag; errclass sees to it that no password is printed.
func badDatabaseURL(err error) error {
	return usagef("--database-url (DATABASE_URL): %s", errclass.Safe(err))
}
