// Package registry finds the schemas of messages in a schema registry. Each value begins with the
// id of its schema (Confluent's wire format: a zero byte and a four-byte id).
//
//	value ──id──▶ known? ──yes──▶ the schema's format
//	                │ no
//	                ▼
//	             fetch, with references ──▶ compile ──▶ store
//	                │            │             └ cannot be used: stored as malformed
//	                │            └ no such id: malformed, for some seconds
//	                ├ refused, but another id is answered: malformed, for some seconds
//	                └ anything else: an error, and the caller retries
//
// The schema of an id never changes, so a schema is fetched once and stays in memory while there is
// space. During an outage of the registry, messages with stored schemas can still be read.
package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"projector/errclass"
	"projector/internal/credential"
)

// Config contains the addresses and credentials of the schema registry.
type Config struct {
	// URLs are the addresses of servers with the same schemas. If a server cannot be reached, or
	// answers 5xx or 429, the next one is asked.
	URLs []string
	// Username is for basic authentication. It is empty if there is none.
	Username string
	// Password returns the current password. It is called for each request if Username is set.
	Password func() (string, error)
	// TLS is used for URLs that begin with https.
	TLS credential.TLS
	// ReadOnly means that the caller writes no dead letters. A value without a header is then
	// reported as malformed even if the registry has never answered.
	ReadOnly bool
}

const (
	requestWithin = 5 * time.Second
	// answerBytes limits the size of an answer. The largest schema that can be compiled is 512 KiB,
	// and JSON escapes make it longer.
	answerBytes = 2 << 20
	// maxReferences limits the number of schemas that one schema refers to, directly or indirectly.
	// maxText limits the bytes of the schema's text and of these schemas' texts together.
	maxReferences = 200
	maxText       = 2 << 20
	userAgent     = "projector"
)

// client sends requests to a registry. It does not retry.
type client struct{ sr *sr.Client }

func newClient(cfg Config) (*client, error) {
	opts := []sr.ClientOpt{
		sr.URLs(cfg.URLs...), sr.UserAgent(userAgent),
		sr.HTTPClient(&http.Client{Transport: bounded{connecting{cfg.TLS}}, Timeout: requestWithin, CheckRedirect: staysEncrypted}),
	}
	if cfg.Username != "" {
		opts = append(opts, sr.PreReq(func(req *http.Request) error {
			password, err := cfg.Password()
			if err != nil {
				return err
			}
			req.SetBasicAuth(cfg.Username, password)
			return nil
		}))
	}
	cl, err := sr.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("create the client of the schema registry: %w", err)
	}
	return &client{cl}, nil
}

// connecting is a transport that connects for each request, so that it reads the files of the
// certificates each time. A transport with open connections could not do this behind a proxy.
type connecting struct{ credential.TLS }

func (c connecting) RoundTrip(req *http.Request) (*http.Response, error) {
	cfg, err := c.Config()
	if err != nil {
		return nil, err
	}
	once := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: cfg, ResponseHeaderTimeout: requestWithin, DisableKeepAlives: true}
	return once.RoundTrip(req)
}

const (
	mostRedirects = 5

	errClearRedirect = errclass.Text("the server redirects from https to http, where the password could be read: correct the URL or the server")
	errManyRedirects = errclass.Text("the server redirects again and again")
)

// staysEncrypted refuses a redirect from https to http. Go's client would send the password along,
// because it compares only the names of the hosts.
func staysEncrypted(next *http.Request, earlier []*http.Request) error {
	switch {
	case earlier[0].URL.Scheme == "https" && next.URL.Scheme != "https":
		return errClearRedirect
	case len(earlier) > mostRedirects:
		return errManyRedirects
	}
	return nil
}

// schema is a schema with all schemas that it refers to, directly or indirectly. A reference
// comes after the references that it needs itself.
type schema struct {
	kind       string // AVRO, PROTOBUF, JSON, or a type that only this registry has
	text       string
	references []reference
}

// size is the length of the schema's text and of all references, in bytes.
func (s *schema) size() int {
	n := len(s.text)
	for _, r := range s.references {
		n += len(r.text)
	}
	return n
}

// reference is a schema and the name by which other schemas refer to it.
type reference struct{ name, text string }

var errUnknownID = errors.New("the schema registry has no schema of that id")

// These errors are for a schema that is over a limit.
var (
	errManyReferences  = fmt.Errorf("it refers to more than %d others", maxReferences)
	errLargeReferences = fmt.Errorf("it is larger than %d MiB with all that it refers to", maxText>>20)
	errTooLarge        = fmt.Errorf("the answer is larger than %d MiB", answerBytes>>20)
)

// errNoSchema is for a successful answer without a schema. It probably comes from another server,
// for example from a proxy during maintenance.
const errNoSchema errclass.Text = "the answer has no schema, although its status is 200: does another server answer, such as a proxy?"

// fetch requests a schema by its id. It returns errUnknownID only if the answer has the registry's
// own error code, because a 404 without that code may come from another server or a wrong URL. If a
// server fails and the next one does not have the schema or refuses it, fetch returns the failure
// of the first server. The next server may be a replica that is late.
func (c *client) fetch(ctx context.Context, id uint32) (schema, error) {
	var failed error
	s, err := c.fetchAny(context.WithValue(ctx, failureKey{}, &failed), id)
	if failed != nil && (errors.Is(err, errUnknownID) || refusal(err) != "") {
		err = failed
	}
	return s, ofLast(err)
}

// answer is what is needed of the registry's answer. The client's own type has more, such as the
// rules of a data contract, and cannot be decoded if one of the values is not known.
type answer struct {
	Schema     string               `json:"schema"`
	Type       string               `json:"schemaType"`
	References []sr.SchemaReference `json:"references"`
}

func (c *client) get(ctx context.Context, path string) (a answer, err error) {
	err = c.sr.Do(ctx, http.MethodGet, path, nil, &a)
	return a, err
}

func (c *client) byID(ctx context.Context, id uint32) (answer, error) {
	return c.get(ctx, fmt.Sprintf("/schemas/ids/%d", id))
}

func (c *client) fetchAny(ctx context.Context, id uint32) (schema, error) {
	found, err := c.byID(ctx, id)
	if err != nil {
		if isUnknownID(err) {
			return schema{}, errUnknownID
		}
		return schema{}, err
	}
	if found.Schema == "" {
		return schema{}, errNoSchema
	}
	s := schema{kind: strings.ToUpper(cmp.Or(found.Type, sr.TypeAvro.String())), text: found.Schema}
	err = c.collect(ctx, found.References, &s, map[string]bool{})
	return s, err
}

// refusal returns a reason if err may concern only the requested schema. It returns "" for errors
// that concern all requests, such as an outage, a wrong password or too many requests. A wrong URL
// also gives a reason, so the caller must check that the registry answers for other ids.
func refusal(err error) string {
	var answer *sr.ResponseError
	switch {
	case errors.Is(err, errManyReferences), errors.Is(err, errLargeReferences), errors.Is(err, errTooLarge), errors.Is(err, errNoSchema):
		return err.Error()
	case !errors.As(err, &answer) || answer.StatusCode < 400 || answer.StatusCode >= 500:
		return ""
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return ""
	}
	return fmt.Sprintf("the registry refuses it or one that it refers to (status %d, error code %d), and answers for others: "+
		"may this account read it?", answer.StatusCode, answer.ErrorCode)
}

// answers reports whether the registry returns a schema for id or answers that there is none.
func (c *client) answers(ctx context.Context, id uint32) bool {
	found, err := c.byID(ctx, id)
	return err == nil && found.Schema != "" || isUnknownID(err)
}

func isUnknownID(err error) bool {
	var answer *sr.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound && answer.ErrorCode == sr.ErrSchemaNotFound.Code
}

// ping checks whether the registry answers. Any status below 500 counts as an answer, because the
// configured user may not be permitted to send this request.
func (c *client) ping(ctx context.Context) error {
	err := c.sr.Do(ctx, http.MethodGet, "/schemas/types", nil, new([]string))
	if refused, is := errors.AsType[*sr.ResponseError](err); is && refused.StatusCode < http.StatusInternalServerError {
		return nil
	}
	return ofLast(err)
}

// collect appends all references to s.references. Of several with one name, it takes the first, as
// Confluent's registry does: they may be versions of one schema, which cannot be used together. It
// includes references whose subject was deleted.
func (c *client) collect(ctx context.Context, references []sr.SchemaReference, s *schema, seen map[string]bool) error {
	for _, r := range references {
		if seen[r.Name] {
			continue
		}
		if seen[r.Name] = true; len(seen) > maxReferences {
			return errManyReferences
		}
		version := strconv.Itoa(r.Version)
		if r.Version < 0 {
			version = "latest"
		}
		path := "/subjects/" + url.PathEscape(r.Subject) + "/versions/" + version
		found, err := c.get(sr.WithParams(ctx, sr.ShowDeleted), path)
		if err != nil {
			return err
		}
		if found.Schema == "" {
			return errNoSchema
		}
		if err := c.collect(ctx, found.References, s, seen); err != nil {
			return err
		}
		s.references = append(s.references, reference{r.Name, found.Schema})
		if s.size() > maxText {
			return errLargeReferences
		}
	}
	return nil
}

// bounded is a transport that returns an error when it reads an answer larger than answerBytes. It
// also returns an error for an answer of a server that does not work, so that the client asks the
// next server.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(req)
	if err == nil {
		response.Body = &boundedBody{response.Body, answerBytes}
		if response.StatusCode >= http.StatusInternalServerError || response.StatusCode == http.StatusTooManyRequests {
			err = failure(response)
		}
	}
	if err != nil {
		if first, is := req.Context().Value(failureKey{}).(*error); is && *first == nil {
			*first = err
		}
		return nil, err
	}
	return response, nil
}

// failureKey is the key of a context's pointer to an error. It receives the error of the first server
// that failed.
type failureKey struct{}

// failure returns the error for an answer, as the client would make it, and closes the answer.
func failure(response *http.Response) error {
	at := *response.Request.URL
	at.RawQuery = ""
	e := &sr.ResponseError{Method: response.Request.Method, URL: at.String(), StatusCode: response.StatusCode}
	e.Raw, _ = io.ReadAll(response.Body) // a part is enough
	_ = response.Body.Close()
	if len(e.Raw) == 0 {
		e.Message = "no response"
	}
	_ = json.Unmarshal(e.Raw, e) // the answer of a proxy has no error code
	return e
}

// ofLast returns the answer of the last server without the texts of the client around it, which
// repeat its URL.
func ofLast(err error) error {
	if answer, is := errors.AsType[*sr.ResponseError](err); is {
		return answer
	}
	return err
}

type boundedBody struct {
	io.ReadCloser
	left int
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return n, errTooLarge
	}
	return n, err
}

// Dependency is the name of the registry in metrics and logs.
const Dependency = "schema_registry"

const said = "schema registry, --schema-registry-url (SCHEMA_REGISTRY_URL): "

// Error means that the registry could not be reached or did not answer as expected. The
// request can be retried.
type Error struct{ err error }

func (e *Error) Error() string { return said + e.err.Error() }

func (e *Error) Unwrap() error { return e.err }

// SafeText implements errclass.Describer.
func (e *Error) SafeText() string { return said + errclass.Safe(e.err) }

// Dependency returns the name of the registry as a dependency.
func (*Error) Dependency() string { return Dependency }
