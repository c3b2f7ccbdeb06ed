package registry_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"projector/errclass"
	"projector/internal/credential"
	"projector/internal/registry"
	"projector/projection/event"
)

// A registry that redirects from https to http must not get the password in clear text.
func TestThePasswordIsNotSentInClearText(t *testing.T) {
	s := newStub(t)
	s.hold(byID(7), "", inline())
	var inClear atomic.Bool
	s.seen = func(r *http.Request) {
		_, _, sent := r.BasicAuth()
		inClear.Store(inClear.Load() || sent)
	}
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, s.URL+r.URL.Path, http.StatusMovedPermanently) //nolint:gosec // to the test's own server
	}))
	t.Cleanup(secure.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	if err := os.WriteFile(ca, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.resolver(t, event.FormatAvro, func(c *registry.Config) {
		c.URLs, c.TLS = []string{secure.URL + "/api"}, credential.TLS{CA: ca}
		c.Username, c.Password = "u", func() (string, error) { return "secret", nil }
	})
	_, err := r.Resolve(t.Context(), framed(7))
	if err == nil || !strings.Contains(errclass.Safe(err), "redirects from https to http") {
		t.Errorf("error %v", errclass.Safe(err))
	}
	if inClear.Load() {
		t.Error("the password was sent in clear text")
	}
}
