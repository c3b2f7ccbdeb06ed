package registry_test

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"projector/errclass"
	"projector/internal/registry"
	"projector/projection/event"
)

// answerAs makes the stub respond like a registry. The function fault returns the handler for a
// request that is refused, or nil for a normal response.
func (s *stub) answerAs(fault func(path string) http.HandlerFunc) {
	s.breakWith(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, "/api")
		if refused := fault(path); refused != nil {
			refused(w, r)
			return
		}
		s.answer(path)(w, r)
	})
}

func refusing(code int, body string, paths ...string) func(string) http.HandlerFunc {
	return func(path string) http.HandlerFunc {
		for _, refused := range paths {
			if path == refused {
				return status(code, body)
			}
		}
		return nil
	}
}

// TestIDsThatNoRegistryHas shows that an id that no registry can have is not requested. Confluent's
// registry answers such an id with a plain 404, like a server at a wrong URL.
func TestIDsThatNoRegistryHas(t *testing.T) {
	s := newStub(t)
	s.breakWith(status(http.StatusNotFound, `{"error_code":404,"message":"HTTP 404 Not Found"}`))
	r := s.resolver(t, event.FormatAvro)
	for _, id := range []uint32{math.MaxInt32 + 1, math.MaxUint32, 0x80ffffff} {
		checkMalformed(t, resolve(t, r, framed(id)), "schema id above 2147483647")
	}
	if n := s.total(); n != 0 {
		t.Errorf("%d requests", n)
	}
	if _, err := r.Resolve(t.Context(), framed(math.MaxInt32)); errclass.Registry(err) != errclass.RetryUnready {
		t.Errorf("the largest id of a registry is not asked for: %v", err)
	}
}

// If the registry refuses one id and answers for others, the refusal concerns only this id.
func TestOneIDIsRefused(t *testing.T) {
	missing := func(s *stub) {
		s.hold(byID(8), "AVRO", strings.Replace(opened, "%s", `"common.Money"`, 1), reference("common.Money", "money", 2))
	}
	subject := "/subjects/money/versions/2"
	large := strings.Repeat("x", 3<<20)
	for name, tt := range map[string]struct {
		fault func(string) http.HandlerFunc
		hold  func(*stub)
		says  string
	}{
		"not permitted":             {refusing(http.StatusForbidden, `{"error_code":40301,"message":"secret"}`, byID(8)), nil, "status 403, error code 40301"},
		"a proxy's word":            {refusing(http.StatusForbidden, "<html>secret", byID(8)), nil, "status 403"},
		"a plain 404":               {refusing(http.StatusNotFound, `{"error_code":404}`, byID(8)), nil, "status 404, error code 404"},
		"a bad request":             {refusing(http.StatusBadRequest, "", byID(8)), nil, "status 400"},
		"unprocessable":             {refusing(http.StatusUnprocessableEntity, `{"error_code":42202}`, byID(8)), nil, "42202"},
		"too large":                 {refusing(http.StatusOK, large, byID(8)), nil, "larger than 2 MiB"},
		"no schema":                 {refusing(http.StatusOK, `{}`, byID(8)), nil, "no schema"},
		"a reference has no schema": {refusing(http.StatusOK, `{}`, subject), missing, "no schema"},
		"a reference not permitted": {refusing(http.StatusForbidden, "", subject), missing, "status 403"},
		"a reference is missing":    {refusing(0, ""), missing, "40403"},
		"a reference too large":     {refusing(http.StatusOK, large, subject), missing, "larger than 2 MiB"},
	} {
		for _, known := range []bool{false, true} {
			s := newStub(t)
			s.hold(byID(7), "AVRO", inline())
			if tt.hold != nil {
				tt.hold(s)
			}
			s.answerAs(tt.fault)
			r := s.resolver(t, event.FormatAvro)
			if known {
				checkOpened(t, resolve(t, r, openedEvent(t, 7)))
			}
			began := time.Now()
			for range 3 {
				d := resolve(t, r, framed(8))
				checkMalformed(t, d, "schema 8 cannot be used")
				if d.Fault != nil && (!strings.Contains(d.Fault.Error(), tt.says) || strings.Contains(d.Fault.Error(), "secret")) {
					t.Errorf("%s: %v does not say %q", name, d.Fault, tt.says)
				}
			}
			if n := s.count(byID(8)); n < 2 || n > 2*periods(began) {
				t.Errorf("%s: asked for %d times", name, n)
			}
			checkOpened(t, resolve(t, r, openedEvent(t, 7)))
		}
	}
}

// If the registry refuses all ids, this is an outage, even if it has answered for some of them
// before.
func TestAllIDsAreRefused(t *testing.T) {
	for name, fault := range map[string]http.HandlerFunc{
		"not permitted":  status(http.StatusForbidden, `{"error_code":40301}`),
		"a plain 404":    status(http.StatusNotFound, `{"error_code":404}`),
		"a bad request":  status(http.StatusBadRequest, ""),
		"wrong password": status(http.StatusUnauthorized, ""),
	} {
		s := newStub(t)
		s.hold(byID(7), "AVRO", inline())
		s.hold(byID(8), "AVRO", inline())
		r := s.resolver(t, event.FormatAvro)
		checkOpened(t, resolve(t, r, openedEvent(t, 7)))
		s.breakWith(fault)
		for range 2 {
			_, err := r.Resolve(t.Context(), openedEvent(t, 8))
			var trouble *registry.Error
			if !errors.As(err, &trouble) || errclass.Registry(err) != errclass.RetryUnready {
				t.Errorf("%s: %v", name, err)
			}
		}
		s.breakWith(nil)
		checkOpened(t, resolve(t, r, openedEvent(t, 8)))
	}
}

// A proxy answers all requests with status 200 and its own JSON, after the registry has answered for
// another id. This is an outage, so no event becomes a dead letter.
func TestAnAnswerWithoutASchemaIsAnOutage(t *testing.T) {
	s := newStub(t)
	s.hold(byID(7), "AVRO", inline())
	s.hold(byID(8), "AVRO", inline())
	r := s.resolver(t, event.FormatAvro)
	checkOpened(t, resolve(t, r, openedEvent(t, 7)))
	s.breakWith(status(http.StatusOK, `{"status":"maintenance"}`))
	if _, err := r.Resolve(t.Context(), openedEvent(t, 8)); !errors.As(err, new(*registry.Error)) {
		t.Errorf("%v", err)
	}
	s.breakWith(nil)
	checkOpened(t, resolve(t, r, openedEvent(t, 8)))
}

// The registry refuses the first request for an id and answers the repeated one. So the refusal was
// temporary, and the event must be decoded.
func TestARefusalThatEnds(t *testing.T) {
	s := newStub(t)
	s.hold(byID(7), "AVRO", inline())
	asked := 0
	s.answerAs(func(path string) http.HandlerFunc {
		if asked++; asked == 1 {
			return status(http.StatusForbidden, "")
		}
		return nil
	})
	checkOpened(t, resolve(t, s.resolver(t, event.FormatAvro), openedEvent(t, 7)))
	if asked != 3 {
		t.Errorf("%d requests", asked)
	}
}

// A refusal counts as a problem of one id only after the registry has answered for another id. If
// there is an outage during the request for the other id, the refusal stays an error that is
// retried.
func TestARefusalWithoutProof(t *testing.T) {
	s := newStub(t)
	s.answerAs(func(path string) http.HandlerFunc {
		if path == byID(8) {
			return status(http.StatusForbidden, "")
		}
		return status(http.StatusServiceUnavailable, "")
	})
	_, err := s.resolver(t, event.FormatAvro).Resolve(t.Context(), framed(8))
	if errclass.Registry(err) != errclass.RetryUnready {
		t.Errorf("%v", err)
	}
}

// The number of references of a schema is limited.
func TestTooManyReferences(t *testing.T) {
	s := newStub(t)
	many := make([]object, 300)
	for i := range many {
		many[i] = reference(fmt.Sprint("common.Currency", i), "currency", i)
		s.hold("/subjects/currency/versions/"+strings.TrimPrefix(byID(i), "/schemas/ids/"), "AVRO", currency)
	}
	s.hold(byID(8), "AVRO", inline(), many...)
	checkMalformed(t, resolve(t, s.resolver(t, event.FormatAvro), framed(8)), "refers to more than 200 others")
	if n := s.total(); n > 500 {
		t.Errorf("%d requests", n)
	}
}

// The total size of cached schemas is limited. Removed schemas are fetched again.
func TestLargeSchemasMakeRoom(t *testing.T) {
	s := newStub(t)
	large := strings.TrimSuffix(inline(), "}") + `,"doc":"` + strings.Repeat("x", 500<<10) + `"}`
	r := s.resolver(t, event.FormatAvro)
	const schemas = 20 // the resolver keeps 8 MiB
	for id := range schemas {
		s.hold(byID(id), "AVRO", large)
		checkOpened(t, resolve(t, r, openedEvent(t, uint32(id))))
	}
	began := s.total()
	for id := range schemas {
		checkOpened(t, resolve(t, r, openedEvent(t, uint32(id))))
		if s.total() > began {
			return
		}
	}
	t.Errorf("10 MiB of schemas are kept")
}
