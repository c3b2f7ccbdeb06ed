package flags

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"projector/internal/cli/exit"
)

func TestSecurityFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const none = "/no/such/file"
	for name, test := range map[string]struct {
		flags SecurityFlags
		want  string // text in the error; "" for no error
	}{
		"nothing":                  {SecurityFlags{}, ""},
		"TLS":                      {SecurityFlags{TLS: true, TLSServerName: "kafka"}, ""},
		"name without TLS":         {SecurityFlags{TLSServerName: "kafka"}, "--tls (KAFKA_TLS)"},
		"CA without TLS":           {SecurityFlags{TLSCA: file}, "--tls (KAFKA_TLS)"},
		"no CA file":               {SecurityFlags{TLS: true, TLSCA: none}, "--tls-ca"},
		"CA is no certificate":     {SecurityFlags{TLS: true, TLSCA: file}, "no PEM certificate"},
		"certificate without key":  {SecurityFlags{TLS: true, TLSCert: file}, "--tls-key"},
		"no certificate file":      {SecurityFlags{TLS: true, TLSCert: none, TLSKey: none}, "--tls-cert"},
		"certificate is none":      {SecurityFlags{TLS: true, TLSCert: file, TLSKey: file}, "--tls-cert"},
		"PLAIN":                    {SecurityFlags{SASLMechanism: "plain", SASLUsername: "u", SASLPasswordFile: file}, ""},
		"no password":              {SecurityFlags{SASLMechanism: "PLAIN", SASLUsername: "u"}, "--sasl-password-file"},
		"no user":                  {SecurityFlags{SASLMechanism: "PLAIN", SASLPassword: "p"}, "--sasl-username"},
		"password twice":           {SecurityFlags{SASLMechanism: "PLAIN", SASLUsername: "u", SASLPassword: "p", SASLPasswordFile: file}, "give one"},
		"no password file":         {SecurityFlags{SASLMechanism: "SCRAM-SHA-512", SASLUsername: "u", SASLPasswordFile: none}, "--sasl-password-file"},
		"user without mechanism":   {SecurityFlags{SASLUsername: "u"}, "--sasl-mechanism"},
		"token without mechanism":  {SecurityFlags{SASLTokenFile: file}, "--sasl-mechanism"},
		"token":                    {SecurityFlags{SASLMechanism: "OAUTHBEARER", SASLTokenFile: file}, ""},
		"no token":                 {SecurityFlags{SASLMechanism: "OAUTHBEARER"}, "--sasl-token-file"},
		"no token file":            {SecurityFlags{SASLMechanism: "OAUTHBEARER", SASLTokenFile: none}, "--sasl-token-file"},
		"token and user":           {SecurityFlags{SASLMechanism: "OAUTHBEARER", SASLTokenFile: file, SASLUsername: "u"}, "--sasl-username"},
		"token with PLAIN":         {SecurityFlags{SASLMechanism: "PLAIN", SASLTokenFile: file}, "--sasl-token-file"},
		"mechanism nobody knows":   {SecurityFlags{SASLMechanism: "GSSAPI"}, "OAUTHBEARER"},
		"empty password from file": {SecurityFlags{SASLMechanism: "PLAIN", SASLUsername: "u", SASLPasswordFile: empty}, "is empty"},
	} {
		_, err := test.flags.options()
		var usage exit.UsageError
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (!errors.As(err, &usage) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v, want a usage error with %q", name, err, test.want)
		}
	}
}

// TestSecretsAreReadForEachConnection shows that the first message of a new connection contains the
// present secret.
func TestSecretsAreReadForEachConnection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, flags := range []SecurityFlags{
		{SASLMechanism: mechanismPlain, SASLUsername: "u", SASLPasswordFile: file},
		{SASLMechanism: mechanismOAuth, SASLTokenFile: file},
	} {
		write("first")
		mechanism, err := flags.sasl()
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"first", "second"} {
			write(secret + "\n")
			_, sent, err := mechanism.Authenticate(t.Context(), "broker")
			if err != nil || !bytes.Contains(sent, []byte(secret)) || bytes.Contains(sent, []byte("\n")) {
				t.Errorf("%s: the secret %q is not sent: %v", flags.SASLMechanism, secret, err)
			}
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if _, _, err := mechanism.Authenticate(t.Context(), "broker"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: without the file: %v", flags.SASLMechanism, err)
		}
	}
}

// TestWhatTravelsInClearTextIsWarnedAbout shows that an unsafe setting causes one warning, and that
// TLS or a local connection causes none.
func TestWhatTravelsInClearTextIsWarnedAbout(t *testing.T) {
	const far, near = "kafka:9092", "localhost:9092"
	for name, test := range map[string]struct {
		broker string
		flags  SecurityFlags
		want   string // "" for no warning
	}{
		"PLAIN":             {far, SecurityFlags{SASLMechanism: mechanismPlain, SASLUsername: "u", SASLPassword: "pass-phrase"}, "credentials"},
		"SCRAM":             {far, SecurityFlags{SASLMechanism: mechanismScram512, SASLUsername: "u", SASLPassword: "pass-phrase"}, "account events"},
		"no SASL":           {far, SecurityFlags{}, "account events"},
		"on this machine":   {near, SecurityFlags{SASLMechanism: mechanismPlain, SASLUsername: "u", SASLPassword: "pass-phrase"}, ""},
		"over TLS":          {far, SecurityFlags{TLS: true, SASLMechanism: mechanismPlain, SASLUsername: "u", SASLPassword: "pass-phrase"}, ""},
		"one of two is far": {near + "," + far, SecurityFlags{}, "account events"},
	} {
		var log bytes.Buffer
		flags := KafkaFlags{Brokers: strings.Split(test.broker, ","), Topic: "events", SecurityFlags: test.flags}
		if _, err := flags.Client(slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Fatal(err)
		}
		warned := strings.Count(log.String(), "level=WARN") == 1 && strings.Contains(log.String(), test.want) && strings.Contains(log.String(), "--tls")
		if warned != (test.want != "") || strings.Contains(log.String(), "pass-phrase") {
			t.Errorf("%s: %s", name, &log)
		}
	}
}

func TestPostgresWithoutVerifiedTLSIsWarnedAbout(t *testing.T) {
	for url, want := range map[string]bool{
		"postgres://u:secret-word@db/bank":                              true,
		"postgres://u@db/bank?sslmode=disable":                          true,
		"postgres://u@db/bank?sslmode=allow":                            true,
		"postgres://u@db/bank?sslmode=prefer":                           true,
		"postgres://u@db/bank?sslmode=require":                          true,
		"postgres://u@db/bank?sslmode=verify-full":                      false,
		"postgres://u@db/bank?sslmode=verify-ca":                        false,
		"postgres://u@localhost/bank":                                   false,
		"postgres://u@127.0.0.1:5432/bank":                              false,
		"postgres://u@[::1]/bank":                                       false,
		"host=/run/postgresql user=u dbname=bank":                       false,
		"postgres://u@localhost,db/bank":                                true,
		"host=db user=u password=secret-word dbname=bank sslmode=allow": true,
	} {
		var log bytes.Buffer
		flags := DatabaseFlags{DatabaseURL: url}
		flags.WarnUnverified(slog.New(slog.NewTextHandler(&log, nil)))
		warned := strings.Count(log.String(), "level=WARN") == 1 && strings.Contains(log.String(), "sslmode=verify-full")
		if warned != want || strings.Contains(log.String(), "secret-word") {
			t.Errorf("%s: %q", url, &log)
		}
	}
}

func TestDatabasePasswordFlag(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://u@h/db":             "no such file",
		"postgres://u:secret-word@h/db": "holds a password too",
		"postgres://u@h/db?password=pw": "holds a password too",
	} {
		flags := DatabaseFlags{DatabaseURL: url, DatabasePasswordFile: "/no/such/file"} //nolint:gosec // G101: a path
		_, err := flags.Pool(t.Context())
		var usage exit.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret-word") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
