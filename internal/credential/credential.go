// Package credential reads what proves who we are to a server, and who the server is
// to us: passwords, tokens, certificates and keys that live in files.
//
// Files change while the program runs: Kubernetes renews a mounted secret by
// swapping a symlink. Nothing is cached and nothing is watched. Each new connection
// reads its files, so the next one after a change has the new secret, and a file
// that cannot be read for a while fails that connection and not the program.
//
// All errors are *fs.PathError. They name the file and never contain what is in it.
package credential

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"
)

var errEmpty = errors.New("the file is empty")

// Secret is the text of a file without trailing line ends: a password or a token.
func Secret(path string) (string, error) {
	text, err := os.ReadFile(path) //nolint:gosec // G304: the operator says which file
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" {
		return "", &fs.PathError{Op: "read", Path: path, Err: errEmpty}
	}
	return secret, nil
}

// TLS says how to make TLS connections. The zero value is good: the system's CAs, no
// client certificate, and the server's name is the host that is dialled.
type TLS struct {
	CA         string // file of CA certificates, PEM
	Cert, Key  string // files of the client's certificate and key, PEM; both or none
	ServerName string // what the server's certificate must be for
}

// dialWithin bounds a connection, with its handshake.
const dialWithin = 10 * time.Second

var errNoCertificate = errors.New("no PEM certificate in the file")

// Config reads the files as they are now.
func (t TLS) Config() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, err
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &fs.PathError{Op: "read", Path: t.CA, Err: errNoCertificate}
		}
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		var file *fs.PathError
		if errors.As(err, &file) {
			return nil, err
		}
		if err != nil { // e.g. half of a pair was renewed: the other half follows
			return nil, &fs.PathError{Op: "use", Path: t.Cert, Err: err}
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// Dial connects to address, host:port, by TLS.
func (t TLS) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	cfg, err := t.Config()
	if err != nil {
		return nil, err
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialWithin}, Config: cfg}
	return dialer.DialContext(ctx, network, address)
}
