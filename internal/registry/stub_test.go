package registry_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"projector/internal/registry"
	"projector/projection/event"
)

// stub is a registry with prepared responses.
type stub struct {
	*httptest.Server
	mu      sync.Mutex
	schemas map[string]object   // responses by path
	fault   http.HandlerFunc    // replaces the normal response, if set
	asked   map[string]int      // requests by path
	seen    func(*http.Request) // called for each request, if set
}

func newStub(t *testing.T) *stub {
	t.Helper()
	s := &stub{schemas: map[string]object{}, asked: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *stub) serve(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/api")
	s.mu.Lock()
	s.asked[path]++
	fault, seen := s.fault, s.seen
	s.mu.Unlock()
	answer := s.answer(path)
	if seen != nil {
		seen(r)
	}
	if fault != nil {
		answer = fault
	}
	answer(w, r)
}

// The method answer returns the normal response of the stub to a path.
func (s *stub) answer(path string) http.HandlerFunc {
	s.mu.Lock()
	answer, known := s.schemas[path]
	s.mu.Unlock()
	if !known {
		return status(http.StatusNotFound, `{"error_code":40403,"message":"secret"}`)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		text = []byte(err.Error())
	}
	return status(http.StatusOK, string(text))
}

// The method total returns the number of requests.
func (s *stub) total() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, asked := range s.asked {
		n += asked
	}
	return n
}

// The function status returns a handler that always sends the given status and body.
func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

func (s *stub) breakWith(fault http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

func (s *stub) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

type object = map[string]any

func reference(name, subject string, version int) object {
	return object{"name": name, "subject": subject, "version": version}
}

// The method hold adds a schema to the stub. The path belongs to an id, or to a subject and a
// version.
func (s *stub) hold(path, kind, text string, references ...object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := object{"schema": text, "references": references}
	if kind != "" {
		answer["schemaType"] = kind
	}
	s.schemas[path] = answer
}

func byID(id int) string { return fmt.Sprintf("/schemas/ids/%d", id) }

// resolver returns a resolver that uses the stub.
func (s *stub) resolver(t *testing.T, format string, edit ...func(*registry.Config)) *registry.Resolver {
	t.Helper()
	cfg := registry.Config{URLs: []string{s.URL + "/api"}}
	for _, e := range edit {
		e(&cfg)
	}
	r, err := registry.New(format, event.Options{FirstVersion: 1}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func framed(id uint32, body ...byte) event.Message {
	return event.Message{Value: append(binary.BigEndian.AppendUint32([]byte{0}, id), body...)}
}

func resolve(t *testing.T, r *registry.Resolver, m event.Message) event.Decoded {
	t.Helper()
	f, err := r.Resolve(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	var d event.Decoded
	f.Decode(m, &d)
	return d
}
