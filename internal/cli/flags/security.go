package flags

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"projector/errclass"
	"projector/internal/cli/exit"
	"projector/internal/credential"
)

// SecurityFlags are the flags for TLS and SASL. Files are read again for each new connection.
type SecurityFlags struct {
	TLS           bool   `name:"tls" env:"KAFKA_TLS" group:"Kafka" help:"Connect with TLS."`
	TLSCA         string `name:"tls-ca" env:"KAFKA_TLS_CA" type:"path" placeholder:"FILE" group:"Kafka" help:"CA certificates (PEM); default the system's."`
	TLSCert       string `name:"tls-cert" env:"KAFKA_TLS_CERT" type:"path" placeholder:"FILE" group:"Kafka" help:"Client certificate (PEM)."`
	TLSKey        string `name:"tls-key" env:"KAFKA_TLS_KEY" type:"path" placeholder:"FILE" group:"Kafka" help:"Client key (PEM)."`
	TLSServerName string `name:"tls-server-name" env:"KAFKA_TLS_SERVER_NAME" placeholder:"NAME" group:"Kafka" help:"Name the brokers' certificates must have; default the host that is connected to."`

	SASLMechanism    string `name:"sasl-mechanism" env:"KAFKA_SASL_MECHANISM" placeholder:"NAME" group:"Kafka" help:"PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER; default none."`
	SASLUsername     string `name:"sasl-username" env:"KAFKA_SASL_USERNAME" placeholder:"NAME" group:"Kafka" help:"User name."`
	SASLPassword     string `name:"sasl-password" env:"KAFKA_SASL_PASSWORD" placeholder:"SECRET" group:"Kafka" help:"Password; prefer the file."`
	SASLPasswordFile string `name:"sasl-password-file" env:"KAFKA_SASL_PASSWORD_FILE" type:"path" placeholder:"FILE" group:"Kafka" help:"File that holds the password."`
	SASLTokenFile    string `name:"sasl-token-file" env:"KAFKA_SASL_TOKEN_FILE" type:"path" placeholder:"FILE" group:"Kafka" help:"File that holds the token for OAUTHBEARER."`
}

// These are the supported SASL mechanisms.
const (
	mechanismPlain    = "PLAIN"
	mechanismScram256 = "SCRAM-SHA-256"
	mechanismScram512 = "SCRAM-SHA-512"
	mechanismOAuth    = "OAUTHBEARER"
)

// options returns the options of a Kafka client. A secret that cannot be read now is an error. If it
// cannot be read later, a connection fails and is retried.
func (f *SecurityFlags) options() ([]kgo.Opt, error) {
	var opts []kgo.Opt
	if err := f.checkTLS(); err != nil {
		return nil, err
	}
	if f.TLS {
		opts = append(opts, kgo.Dialer(f.transport().Dial))
	}
	mechanism, err := f.sasl()
	if err != nil {
		return nil, err
	}
	if mechanism != nil {
		opts = append(opts, kgo.SASL(mechanism))
	}
	return opts, nil
}

func (f *SecurityFlags) transport() credential.TLS {
	return credential.TLS{CA: f.TLSCA, Cert: f.TLSCert, Key: f.TLSKey, ServerName: f.TLSServerName}
}

// Principal returns the Kafka principal of this client, or a description of it if only the brokers
// know the name.
func (f *SecurityFlags) Principal() string {
	switch {
	case f.mechanism() == mechanismOAuth:
		return "the principal of the token"
	case f.SASLUsername != "":
		return "User:" + f.SASLUsername
	case f.TLSCert != "":
		return "the principal of the client certificate"
	default:
		return "User:ANONYMOUS"
	}
}

func (f *SecurityFlags) checkTLS() error {
	if !f.TLS {
		if f.TLSCA != "" || f.TLSCert != "" || f.TLSKey != "" || f.TLSServerName != "" {
			return exit.Usagef("--tls (KAFKA_TLS): is off, but --tls-ca, --tls-cert, --tls-key or --tls-server-name is given; turn it on")
		}
		return nil
	}
	if (f.TLSCert == "") != (f.TLSKey == "") {
		return exit.Usagef("--tls-cert and --tls-key (KAFKA_TLS_CERT, KAFKA_TLS_KEY): give both or none")
	}
	_, err := f.transport().Config()
	var file *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &file) && file.Path == f.TLSCA:
		return exit.Usagef("--tls-ca (KAFKA_TLS_CA): %w", err)
	default:
		return exit.Usagef("--tls-cert, --tls-key (KAFKA_TLS_CERT, KAFKA_TLS_KEY): %w", err)
	}
}

// mechanism returns the name of the SASL mechanism, or "" without SASL.
func (f *SecurityFlags) mechanism() string { return strings.ToUpper(f.SASLMechanism) }

// sasl returns the mechanism, or nil without SASL. It refuses flags that do not belong to it.
func (f *SecurityFlags) sasl() (sasl.Mechanism, error) {
	switch f.mechanism() {
	case "":
		if f.SASLUsername != "" || f.SASLPassword != "" || f.SASLPasswordFile != "" || f.SASLTokenFile != "" {
			return nil, exit.Usagef("--sasl-mechanism (KAFKA_SASL_MECHANISM): is not given, but a user, a password or a token is; name the mechanism")
		}
		return nil, nil
	case mechanismPlain:
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			password, err := f.password()
			return plain.Auth{User: f.SASLUsername, Pass: password}, err
		}), f.checkPassword()
	case mechanismScram256:
		return scram.Sha256(f.scram), f.checkPassword()
	case mechanismScram512:
		return scram.Sha512(f.scram), f.checkPassword()
	case mechanismOAuth:
		return oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			token, err := f.token()
			return oauth.Auth{Token: token}, err
		}), f.checkToken()
	default:
		return nil, exit.Usagef("--sasl-mechanism (KAFKA_SASL_MECHANISM): is none that is known; use %s, %s, %s or %s",
			mechanismPlain, mechanismScram256, mechanismScram512, mechanismOAuth)
	}
}

func (f *SecurityFlags) scram(context.Context) (scram.Auth, error) {
	password, err := f.password()
	return scram.Auth{User: f.SASLUsername, Pass: password}, err
}

func (f *SecurityFlags) checkPassword() error {
	switch {
	case f.SASLTokenFile != "":
		return exit.Usagef("--sasl-token-file (KAFKA_SASL_TOKEN_FILE): is for --sasl-mechanism=%s only; %s takes a user and a password",
			mechanismOAuth, f.mechanism())
	case f.SASLPassword != "" && f.SASLPasswordFile != "":
		return exit.Usagef("--sasl-password and --sasl-password-file (KAFKA_SASL_PASSWORD, KAFKA_SASL_PASSWORD_FILE): give one of them")
	case f.SASLUsername == "" || f.SASLPassword == "" && f.SASLPasswordFile == "":
		return exit.Usagef("--sasl-username and --sasl-password-file (KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD_FILE): "+
			"both are needed for --sasl-mechanism=%s", f.mechanism())
	}
	if _, err := f.password(); err != nil {
		return exit.WrongUsage(err)
	}
	return nil
}

func (f *SecurityFlags) checkToken() error {
	switch {
	case f.SASLUsername != "" || f.SASLPassword != "" || f.SASLPasswordFile != "":
		return exit.Usagef("--sasl-username, --sasl-password, --sasl-password-file (KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD, "+
			"KAFKA_SASL_PASSWORD_FILE): not for --sasl-mechanism=%s, which takes --sasl-token-file", mechanismOAuth)
	case f.SASLTokenFile == "":
		return exit.Usagef("--sasl-token-file (KAFKA_SASL_TOKEN_FILE): is needed for --sasl-mechanism=%s", mechanismOAuth)
	}
	if _, err := f.token(); err != nil {
		return exit.WrongUsage(err)
	}
	return nil
}

// password returns the password that the file contains now, or that of the flag.
func (f *SecurityFlags) password() (string, error) {
	if f.SASLPasswordFile == "" {
		return f.SASLPassword, nil
	}
	return FromFile("--sasl-password-file (KAFKA_SASL_PASSWORD_FILE)", f.SASLPasswordFile)
}

func (f *SecurityFlags) token() (string, error) {
	token, err := FromFile("--sasl-token-file (KAFKA_SASL_TOKEN_FILE)", f.SASLTokenFile)
	return strings.TrimSpace(token), err
}

// FromFile reads a secret. Its error names the flag and not the file, because a person may have
// typed the secret itself instead of the name of a file.
func FromFile(flag, path string) (string, error) {
	secret, err := credential.Secret(path)
	if err == nil {
		return secret, nil
	}
	why := err
	var file *fs.PathError
	if errors.As(err, &file) {
		why = file.Err
	}
	return "", errclass.WithCause(fmt.Sprintf("%s: must be a file that holds the secret: %v", flag, why), err)
}

// SecurityChoices has the possible values of flags, by the flag's name.
var SecurityChoices = map[string][]string{
	"sasl-mechanism": {mechanismPlain, mechanismScram256, mechanismScram512, mechanismOAuth},
}

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
