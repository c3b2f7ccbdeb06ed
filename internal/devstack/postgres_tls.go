package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// installCertificate makes the next start, or a reload, use the certificate.
func (p *Postgres) installCertificate(c Certificate) error {
	for name, file := range map[string]struct {
		setting string
		text    []byte
	}{
		"server.crt": {"ssl_cert_file", c.Cert},
		"server.key": {"ssl_key_file", c.Key},
	} {
		path := filepath.Join(p.dir, name)
		if err := os.WriteFile(path, file.text, 0o600); err != nil {
			return err
		}
		if err := p.account.own(path); err != nil {
			return err
		}
		p.settings[file.setting] = path
	}
	p.settings["ssl"] = "on"
	return nil
}

// RenewCertificate gives a running server, which was started with a certificate,
// another one, and returns when new connections see it. Those that are there stay.
func (p *Postgres) RenewCertificate(ctx context.Context, c Certificate) error {
	if err := p.installCertificate(c); err != nil {
		return fmt.Errorf("renew the certificate: %w", err)
	}
	before, err := p.loaded(ctx, "SELECT pg_conf_load_time() FROM pg_reload_conf()")
	for loaded := before; err == nil && !loaded.After(before); {
		loaded, err = p.loaded(ctx, "SELECT pg_conf_load_time()")
	}
	if err != nil {
		return fmt.Errorf("renew the certificate: %w", err)
	}
	return nil
}

// loaded asks in a new session, which knows the settings as the server does.
func (p *Postgres) loaded(ctx context.Context, query string) (at time.Time, err error) {
	conn, err := pgx.Connect(ctx, p.URL())
	if err != nil {
		return at, err
	}
	err = conn.QueryRow(ctx, query).Scan(&at)
	return at, errors.Join(err, conn.Close(ctx))
}
