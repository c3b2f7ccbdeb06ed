package devstack

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

func TestConnectorStateDistinguishesRunningStartingAndFailed(t *testing.T) {
	tests := map[string]struct {
		status       int
		body         string
		ready, final bool
	}{
		"all run":              {200, `{"connector":{"state":"RUNNING"},"tasks":[{"state":"RUNNING"}]}`, true, false},
		"no task yet":          {200, `{"connector":{"state":"RUNNING"},"tasks":[]}`, false, false},
		"a task starts":        {200, `{"connector":{"state":"RUNNING"},"tasks":[{"state":"UNASSIGNED"}]}`, false, false},
		"not known yet":        {404, `{"error_code":404}`, false, false},
		"a task has failed":    {200, `{"connector":{"state":"RUNNING"},"tasks":[{"state":"FAILED","trace":"no slot"}]}`, false, true},
		"connector has failed": {200, `{"connector":{"state":"FAILED","trace":"no slot"},"tasks":[]}`, false, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/connectors/account-outbox/status" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			}))
			defer server.Close()
			_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			c := &Connect{}
			if c.port, err = strconv.Atoi(port); err != nil {
				t.Fatal(err)
			}
			err = c.connectorState(t.Context(), "account-outbox")
			var failure connectorFailure
			if (err == nil) != test.ready || errors.As(err, &failure) != test.final {
				t.Errorf("got %v", err)
			}
			if test.final && !strings.Contains(err.Error(), "no slot") {
				t.Errorf("the reason is not reported: %v", err)
			}
		})
	}
}

func TestConnectorsAreKnownByName(t *testing.T) {
	names, err := connectorNames([][]byte{[]byte(`{"name":"a","config":{}}`), []byte(`{"name":"b"}`)})
	if err != nil || strings.Join(names, " ") != "a b" {
		t.Errorf("got %q, %v", names, err)
	}
	for _, document := range []string{`{"config":{}}`, `name=a`} {
		if _, err := connectorNames([][]byte{[]byte(document)}); err == nil {
			t.Errorf("%s: no error", document)
		}
	}
}
