// Package credential reads passwords, tokens, certificates and keys from files.
//
// Files change while the program runs. For example, Kubernetes renews a mounted secret by changing
// a symlink. So nothing is cached, and each new connection reads its files. If a file cannot be
// read, only that connection fails.
//
// All errors about a file are *fs.PathError. They name the file and never contain its text.
package credential

import (
	"bytes"
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

var (
	errEmpty = errors.New("the file is empty")
	errNUL   = errors.New("the file has a NUL byte; save it as UTF-8 text, not as UTF-16")
	errPipe  = errors.New("it is a pipe or a device, and each connection reads it again; name a file")
)

// Secret returns a password or a token: the text of a file without trailing line ends and without a
// byte order mark at the start. A NUL is refused, because no server accepts it in a password.
func Secret(path string) (string, error) {
	text, err := read(path)
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(text), "\r\n")
	switch {
	case secret == "":
		return "", &fs.PathError{Op: "read", Path: path, Err: errEmpty}
	case strings.ContainsRune(secret, 0):
		return "", &fs.PathError{Op: "read", Path: path, Err: errNUL}
	}
	return secret, nil
}

// read returns the text of a file without the byte order mark that some editors write at the start.
// With this mark, a password is wrong and the first certificate is not found. A pipe and a device are
// refused, because a second reader may wait forever, or read without an end.
func read(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errPipe}
	}
	text, err := os.ReadFile(path) //nolint:gosec // G304: the operator says which file
	return bytes.TrimPrefix(text, []byte("\ufeff")), err
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
		pem, err := read(t.CA)
		if err != nil {
			return nil, err
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &fs.PathError{Op: "read", Path: t.CA, Err: errNoCertificate}
		}
	}
	if t.Cert != "" {
		cert, err := read(t.Cert)
		if err != nil {
			return nil, err
		}
		key, err := read(t.Key)
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(cert, key)
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
