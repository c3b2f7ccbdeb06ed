package registry_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"projector/errclass"
	"projector/internal/registry"
	"projector/projection/event"
)

// TestTheNextRegistryIsAsked shows that the next of several registries is asked if one does not work,
// whether it cannot be reached or a proxy answers for it.
func TestTheNextRegistryIsAsked(t *testing.T) {
	for _, code := range []int{http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		first, second := newStub(t), newStub(t)
		first.breakWith(status(code, `{"error_code":50001,"message":"secret"}`))
		second.hold(byID(7), "AVRO", inline())
		r := first.resolver(t, event.FormatAvro, func(c *registry.Config) { c.URLs = append(c.URLs, second.URL+"/api") })
		checkOpened(t, resolve(t, r, openedEvent(t, 7)))

		for body, says := range map[string]string{
			`{"error_code":50001,"message":"secret"}`: fmt.Sprintf(" was answered with status %d, error code 50001", code),
			"": fmt.Sprintf(" was answered with status %d", code),
		} {
			second.breakWith(status(code, body))
			_, err := r.Resolve(t.Context(), framed(8))
			want := "schema registry, --schema-registry-url (SCHEMA_REGISTRY_URL): schema 8: GET " + second.URL + "/api/schemas/ids/8" + says
			if safe := errclass.Safe(err); errclass.Registry(err) != errclass.Retry || safe != want {
				t.Errorf("both answer %d: %s, %s", code, errclass.Registry(err), safe)
			}
		}
	}
}

// A server that does not have a schema, or refuses it, may be a late replica of one that fails. So
// the event is not malformed, and the request is repeated.
func TestANextRegistryWithoutTheSchemaIsNotBelieved(t *testing.T) {
	for name, refused := range map[string]bool{"unknown": false, "refused": true} {
		first, second := newStub(t), newStub(t)
		first.breakWith(status(http.StatusServiceUnavailable, ""))
		if refused {
			second.breakWith(func(w http.ResponseWriter, req *http.Request) {
				if strings.HasSuffix(req.URL.Path, "/7") {
					status(http.StatusForbidden, `{"error_code":40301}`)(w, req)
				} else {
					status(http.StatusNotFound, `{"error_code":40403}`)(w, req)
				}
			})
		}
		r := first.resolver(t, event.FormatAvro, func(c *registry.Config) { c.URLs = append(c.URLs, second.URL+"/api") })
		if _, err := r.Resolve(t.Context(), framed(7)); errclass.Registry(err) != errclass.Retry {
			t.Errorf("%s: %v, want an error that is retried", name, err)
		}
		first.breakWith(nil)
		first.hold(byID(7), "AVRO", inline())
		checkOpened(t, resolve(t, r, openedEvent(t, 7)))
	}
}
