package registry_test

import (
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"projector/internal/credential"
	"projector/internal/registry"
	"projector/projection/event"
)

// behindProxy is the address of the only server that the proxy of HTTPS_PROXY connects to.
var behindProxy atomic.Value

// TestMain sets HTTPS_PROXY before the first request, because net/http reads it only once. Servers on
// loopback are never reached through a proxy.
func TestMain(m *testing.M) {
	proxy := httptest.NewServer(http.HandlerFunc(connect))
	if err := os.Setenv("HTTPS_PROXY", proxy.URL); err != nil {
		panic(err)
	}
	status := m.Run()
	proxy.Close()
	os.Exit(status)
}

// connect answers CONNECT and copies the bytes in both directions.
func connect(w http.ResponseWriter, r *http.Request) {
	address, _ := behindProxy.Load().(string)
	server, err := net.Dial("tcp", address)
	if r.Method != http.MethodConnect || err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer func() { _ = server.Close() }()
	w.WriteHeader(http.StatusOK)
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = client.Close() }()
	go func() { _, _ = io.Copy(server, client) }()
	_, _ = io.Copy(client, server)
}

// TestARegistryBehindAProxy expects that the CA of the configuration is used through the proxy too,
// and that its file is read again for each request.
func TestARegistryBehindAProxy(t *testing.T) {
	s := newStub(t)
	for id := range 2 {
		s.hold(byID(7+id), "", inline())
	}
	secure := httptest.NewTLSServer(http.HandlerFunc(s.serve)) // its certificate is for example.com
	t.Cleanup(secure.Close)
	behindProxy.Store(secure.Listener.Addr().String())
	ca := filepath.Join(t.TempDir(), "ca.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	r := s.resolver(t, event.FormatAvro, func(c *registry.Config) {
		c.URLs, c.TLS = []string{"https://example.com/api"}, credential.TLS{CA: ca}
	})
	if _, err := r.Resolve(t.Context(), framed(7)); err == nil {
		t.Error("a schema was fetched without the CA")
	}
	if err := os.WriteFile(ca, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resolve(t.Context(), framed(8)); err != nil {
		t.Errorf("with the CA: %v", err)
	}
}
