package connect

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
	const none = "/no/such/file"
	for name, test := range map[string]struct {
		flags SecurityFlags
		want  string // of the error, "" for none
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
		"empty password from file": {SecurityFlags{SASLMechanism: "PLAIN", SASLUsername: "u", SASLPasswordFile: os.DevNull}, "is empty"},
	} {
		_, err := test.flags.options(slog.New(slog.DiscardHandler))
		var usage exit.UsageError
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want != "" && (!errors.As(err, &usage) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v, want a usage error with %q", name, err, test.want)
		}
	}
}

// TestSecretsAreReadForEachConnection looks at what is sent first to a broker.
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

func TestSecretsInClearTextAreToldOf(t *testing.T) {
	for mechanism, told := range map[string]bool{mechanismPlain: true, mechanismScram512: false} {
		var log bytes.Buffer
		flags := SecurityFlags{SASLMechanism: mechanism, SASLUsername: "u", SASLPassword: "pass-phrase"}
		if _, err := flags.options(slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "--tls"); got != told || strings.Contains(log.String(), "pass-phrase") {
			t.Errorf("%s: %s", mechanism, &log)
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
