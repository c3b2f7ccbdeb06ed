package errclass

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/twmb/franz-go/pkg/sr"
)

// Registry decides about an error of a schema registry's client, wrapped in any depth.
// It never answers Isolate: what a registry refuses says nothing about the event.
// Contexts are treated as in Postgres. A nil error is Unknown.
func Registry(err error) Class { return worst(err, registryNode, networkNode).class }

// registryNode judges what a registry answers. A 404 that got here is no word about a
// schema but the answer of a server at a wrong URL.
func registryNode(node error) (finding, bool) {
	e, ok := node.(*sr.ResponseError) //nolint:errorlint // one node is meant, not its chain
	if !ok {
		return finding{}, false
	}
	f := finding{class: Retry, reason: "http_" + strconv.Itoa(e.StatusCode)}
	switch {
	case e.StatusCode == http.StatusRequestTimeout, e.StatusCode == http.StatusTooManyRequests:
	case e.StatusCode < http.StatusInternalServerError:
		f.class = RetryLoud // credentials, a permission, the URL
	}
	return f, true
}

// registryText tells an answer by its codes: what a server writes beside them may be
// anything.
func registryText(e *sr.ResponseError) string {
	text := fmt.Sprintf("%s %s was answered with status %d", e.Method, e.URL, e.StatusCode)
	if e.ErrorCode != 0 {
		text += fmt.Sprintf(", error code %d", e.ErrorCode)
	}
	switch e.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		text += " (look at the user and the password)"
	case http.StatusNotFound:
		text += " (look at the URL: a registry that does not know a schema answers with error code 40403)"
	}
	return text
}
