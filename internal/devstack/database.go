package devstack

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
)

// CreateDatabase makes a database on the server at adminURL, as a copy of the
// named template ("" is PostgreSQL's own). Nobody may be connected to the
// template while it is copied.
func CreateDatabase(ctx context.Context, adminURL, name, template string) error {
	statement := "CREATE DATABASE " + quoted(name)
	if template != "" {
		statement += " TEMPLATE " + quoted(template)
	}
	if err := execute(ctx, adminURL, statement); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

// DropDatabase removes a database from the server at adminURL, breaking off the
// sessions that use it. One that is not there is no error.
func DropDatabase(ctx context.Context, adminURL, name string) error {
	if err := execute(ctx, adminURL, "DROP DATABASE IF EXISTS "+quoted(name)+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

// WithDatabase returns a URL that differs from databaseURL in the database only.
func WithDatabase(databaseURL, name string) (string, error) {
	u, err := url.Parse(databaseURL)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		// The parser's error quotes its input, and with it a password.
		return "", errors.New("not a database URL: it must look like postgres://user@host:port/database")
	}
	u.Path = "/" + name
	return u.String(), nil
}

func execute(ctx context.Context, databaseURL, statement string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
