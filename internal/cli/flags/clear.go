package flags

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Unverified reports whether a connection by this PostgreSQL URL, and the PG* variables, may
// go over the network without TLS, or with TLS to a server whose certificate is not verified.
func Unverified(url string) bool {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return false
	}
	if unverified(cfg.Host, cfg.TLSConfig) {
		return true
	}
	for _, f := range cfg.Fallbacks {
		if unverified(f.Host, f.TLSConfig) {
			return true
		}
	}
	return false
}

func unverified(host string, c *tls.Config) bool {
	socket := strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@")
	verified := c != nil && (!c.InsecureSkipVerify || c.VerifyPeerCertificate != nil || c.VerifyConnection != nil)
	return !socket && !Loopback(host) && !verified
}

// UnverifiedText says what may be read on the network, and the remedy.
const UnverifiedText = "PostgreSQL is reached without verified TLS: passwords and balances may be read or changed on the network; " +
	"use sslmode=verify-full, with sslrootcert=FILE where the certificate is not of a public authority"

// WarnUnverified logs a PostgreSQL URL that does not ask for verified TLS.
func WarnUnverified(log *slog.Logger, flag, url string) {
	if Unverified(url) {
		log.Warn(UnverifiedText, slog.String("flag", flag))
	}
}

// WarnUnverified is that of --database-url.
func (f *DatabaseFlags) WarnUnverified(log *slog.Logger) {
	WarnUnverified(log, "--database-url (DATABASE_URL)", f.DatabaseURL)
}

// WarnUnverified is that of --outbox-url.
func (f *OutboxFlags) WarnUnverified(log *slog.Logger) {
	if f.OutboxURL != "" {
		WarnUnverified(log, outboxURLFlag, f.OutboxURL)
	}
}

// warnClear logs that credentials or events travel to the brokers in clear text.
func (f *KafkaFlags) warnClear(log *slog.Logger, brokers []string) {
	if f.TLS || allLoopback(brokers) {
		return
	}
	switch name := f.mechanism(); name {
	case mechanismPlain, mechanismOAuth:
		log.Warn("the Kafka credentials and the account events travel in clear text: connect by --tls", slog.String("mechanism", name))
	default:
		log.Warn("the account events travel to and from Kafka in clear text: connect by --tls", slog.String("mechanism", name))
	}
}

func allLoopback(addresses []string) bool {
	for _, address := range addresses {
		host, _, err := net.SplitHostPort(address)
		if err != nil { // no port
			host = address
		}
		if !Loopback(host) {
			return false
		}
	}
	return true
}

// Loopback reports whether only this machine can reach a host.
func Loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}
