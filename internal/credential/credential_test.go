package credential_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"projector/internal/credential"
	"projector/internal/devstack"
)

// write writes a file into the test's folder and returns its path.
func write(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSecret(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"secret": "secret", "secret\n": "secret", "secret\r\n": "secret", "two words \n": "two words ", "": "", "\n": "",
		"\ufeffsecret\r\n\r\n": "secret", "\ufeff": "", "s\x00e\x00": "", "\xff\xfes\x00": "",
	} {
		path := write(t, dir, "secret", []byte(text))
		got, err := credential.Secret(path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), path) {
			t.Errorf("the error does not name the file: %v", err)
		}
	}
	if _, err := credential.Secret(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestAPipeIsRefused names pipes, as the shell's <(command) does. Each connection reads its files, but
// a pipe can be read only one time: the next reader gets nothing, or waits forever.
func TestAPipeIsRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(reader.Close(), writer.Close()) }()
	// /dev/null stands for all devices: a terminal asks again for each connection, /dev/zero never ends.
	for _, path := range []string{pipe, fmt.Sprintf("/dev/fd/%d", reader.Fd()), os.DevNull} {
		failed := make(chan error, 1)
		go func() { _, err := credential.Secret(path); failed <- err }()
		select {
		case err := <-failed:
			if err == nil || !strings.Contains(err.Error(), "is a pipe or a device") {
				t.Errorf("%s: %v", path, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: no answer", path)
		}
	}
}

// party has the certificate of one side of a connection, and the authority that has signed the
// certificate.
type party struct {
	authority *devstack.Authority
	devstack.Certificate
}

func newParty(t *testing.T, hosts ...string) party {
	t.Helper()
	authority, err := devstack.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := authority.Issue("somebody", hosts...)
	if err != nil {
		t.Fatal(err)
	}
	return party{authority, certificate}
}

// listen runs a TLS server until the test ends. It requires a client certificate from the clients'
// authority.
func listen(t *testing.T, server, clients party) string {
	t.Helper()
	pair, err := tls.X509KeyPair(server.Cert, server.Key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(clients.authority.PEM())
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				_, _ = conn.Write([]byte("x")) // the write performs the handshake first
			}()
		}
	}()
	return listener.Addr().String()
}

// greeted connects and waits for the server's byte. The server sends it only after it has accepted
// the client's certificate.
func greeted(ctx context.Context, files credential.TLS, address string) error {
	conn, err := files.Dial(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_, err = conn.Read(make([]byte, 1))
	return err
}

// TestFilesAreReadForEachConnection shows that new connections use renewed certificates of both
// sides, as when a cluster changes its authority.
func TestFilesAreReadForEachConnection(t *testing.T) {
	dir := t.TempDir()
	files := credential.TLS{
		CA: filepath.Join(dir, "ca"), Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"),
	}
	install := func(server, client party) {
		// An editor has written byte order marks and CRLF.
		write(t, dir, "ca", append([]byte("\ufeff"), bytes.ReplaceAll(server.authority.PEM(), []byte("\n"), []byte("\r\n"))...))
		write(t, dir, "cert", append([]byte("\ufeff"), client.Cert...))
		write(t, dir, "key", client.Key)
	}
	oldServer, oldClient := newParty(t, "127.0.0.1"), newParty(t)
	newServer, newClient := newParty(t, "127.0.0.1"), newParty(t)
	before, after := listen(t, oldServer, oldClient), listen(t, newServer, newClient)
	var file *fs.PathError
	if err := greeted(t.Context(), files, before); !errors.As(err, &file) {
		t.Errorf("without files: %v", err)
	}
	install(oldServer, oldClient)
	if err := greeted(t.Context(), files, before); err != nil {
		t.Errorf("at first: %v", err)
	}
	if greeted(t.Context(), files, after) == nil {
		t.Error("the renewed server was trusted before its authority was known")
	}
	write(t, dir, "key", newClient.Key) // the new key does not fit the old certificate
	if err := greeted(t.Context(), files, before); !errors.As(err, &file) {
		t.Errorf("with half of a pair: %v", err)
	}
	install(newServer, newClient)
	if err := greeted(t.Context(), files, after); err != nil {
		t.Errorf("after the renewal: %v", err)
	}
}

func TestServerName(t *testing.T) {
	server, client := newParty(t, "kafka.test"), newParty(t)
	address := listen(t, server, client)
	dir := t.TempDir()
	files := credential.TLS{
		CA:   write(t, dir, "ca", server.authority.PEM()),
		Cert: write(t, dir, "cert", client.Cert), Key: write(t, dir, "key", client.Key),
	}
	for name, good := range map[string]bool{"": false, "other.test": false, "kafka.test": true} {
		files.ServerName = name
		if err := greeted(t.Context(), files, address); (err == nil) != good {
			t.Errorf("server name %q: %v", name, err)
		}
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	var mismatch x509.HostnameError
	files.ServerName = ""
	if err := greeted(t.Context(), files, address); !errors.As(err, &mismatch) || mismatch.Host != host {
		t.Errorf("by its address: %v", err)
	}
}
