package flags

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Unverified reports whether a connection with this PostgreSQL URL and the PG* variables may use
// the network without verified TLS.
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

// UnverifiedText is the warning about a connection for which Unverified returns true.
const UnverifiedText = "PostgreSQL is reached without verified TLS: passwords and balances may be read or changed on the network; " +
	"use sslmode=verify-full, with sslrootcert=FILE where the certificate is not of a public authority"

// WarnUnverified logs a warning if a PostgreSQL URL does not require verified TLS.
func WarnUnverified(log *slog.Logger, flag, url string) {
	if Unverified(url) {
		log.Warn(UnverifiedText, slog.String("flag", flag))
	}
}

// WarnUnverified logs the warning for --database-url.
func (f *DatabaseFlags) WarnUnverified(log *slog.Logger) {
	WarnUnverified(log, "--database-url (DATABASE_URL)", f.DatabaseURL)
}

// WarnUnverified logs the warning for --outbox-url.
func (f *OutboxFlags) WarnUnverified(log *slog.Logger) {
	if f.OutboxURL != "" {
		WarnUnverified(log, outboxURLFlag, f.OutboxURL)
	}
}

// warnClear logs a warning if credentials or events go to the brokers in clear text.
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

// Loopback reports whether host is a loopback address or localhost.
func Loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}
