// Package credential reads passwords, tokens, certificates and keys from files.
//
// Files change while the program runs. For example, Kubernetes renews a mounted secret by changing
// a symlink. So nothing is cached, and each new connection reads its files. If a file cannot be
// read, only that connection fails.
//
// All errors about a file are *fs.PathError. They name the file and never contain its text.
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

// Secret returns a password or a token: the text of a file without trailing line ends.
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

// TLS says how to make TLS connections. The zero value is ready for use. It trusts the system's
// CAs, has no client certificate, and expects the dialled host in the server's certificate.
type TLS struct {
	CA         string // file with CA certificates, PEM
	Cert, Key  string // files with the client's certificate and key, PEM; both or none
	ServerName string // the name that the server's certificate must contain
}

// dialWithin limits the time for making a connection, including the TLS handshake.
const dialWithin = 10 * time.Second

var errNoCertificate = errors.New("no PEM certificate in the file")

// Config reads the files and returns the configuration of one connection.
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
		if err != nil { // for example, the certificate was renewed and the key not yet
			return nil, &fs.PathError{Op: "use", Path: t.Cert, Err: err}
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}

// Dial connects to address (host:port) with TLS.
func (t TLS) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	cfg, err := t.Config()
	if err != nil {
		return nil, err
	}
	dialer := tls.Dialer{NetDialer: &net.Dialer{Timeout: dialWithin}, Config: cfg}
	return dialer.DialContext(ctx, network, address)
}
