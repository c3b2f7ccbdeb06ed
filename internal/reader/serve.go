package reader

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"projector/readmodel/accountdb"
)

const (
	path       = "/v1/accounts/"
	maxWait    = 30 * time.Second
	maxIDBytes = 200
)

// problem is an answer that reports an error.
type problem struct {
	status int
	text   string
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", "no-store") // the account may change at any time
	header.Set("X-Content-Type-Options", "nosniff")
	var deadline time.Time
	if r.ContentLength != 0 { // the server does not wait for a body
		deadline = time.Now()
	}
	// The handler replaces the read deadline of http.Server, because that deadline would also end
	// the wait.
	_ = http.NewResponseController(w).SetReadDeadline(deadline)
	if bad := s.authorize(r); bad != nil {
		refuse(w, bad)
		return
	}
	request, bad := parse(r)
	if bad != nil {
		refuse(w, bad)
		return
	}
	result, err := s.await(r.Context(), request)
	switch {
	case errors.Is(err, errFull):
		refuse(w, &problem{http.StatusTooManyRequests, fmt.Sprintf("%d readers wait already; try again later", maxWaiters)})
	case errors.Is(err, errClosed):
		refuse(w, stoppingProblem)
	case err != nil: // the client has disconnected
	default:
		s.answer(w, result)
	}
}

var stoppingProblem = &problem{http.StatusServiceUnavailable, "this instance is stopping; ask another"}

// answer writes the HTTP response for the result of a wait.
func (s *Server) answer(w http.ResponseWriter, result answer) {
	switch result.outcome {
	case reached:
		s.write(w, http.StatusOK, &result.account)
	case behind:
		s.write(w, http.StatusAccepted, &result.account)
	case absent:
		refuse(w, &problem{http.StatusNotFound, "no event of this account has been applied"})
	case stopping:
		refuse(w, stoppingProblem)
	case unreachable:
		refuse(w, &problem{http.StatusServiceUnavailable, "the database cannot be reached"})
	}
}

// authorize returns the reason to refuse the request, or nil.
func (s *Server) authorize(r *http.Request) *problem {
	if s.cfg.Token == nil {
		return nil
	}
	want, err := s.cfg.Token()
	if err != nil {
		return &problem{http.StatusServiceUnavailable, "this instance cannot read its token"}
	}
	scheme, got, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	// Hashes have equal lengths, so the time of the comparison does not reveal the token's length.
	wanted, given := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(strings.TrimSpace(got)))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(wanted[:], given[:]) != 1 {
		return &problem{http.StatusUnauthorized, "send the token: Authorization: Bearer …"}
	}
	return nil
}

type request struct {
	id      string
	version int64 // 0 means any version
	wait    time.Duration
}

func parse(r *http.Request) (request, *problem) {
	escaped, found := strings.CutPrefix(r.URL.EscapedPath(), path)
	if !found || escaped == "" || strings.Contains(escaped, "/") {
		return request{}, &problem{http.StatusNotFound, "there is only " + path + "{id}; write a / in an id as %2F"}
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return request{}, &problem{http.StatusMethodNotAllowed, "GET and HEAD only"}
	}
	if r.ContentLength != 0 {
		return request{}, badRequest("send no body")
	}
	id, err := url.PathUnescape(escaped)
	if err != nil || !utf8.ValidString(id) || len(id) > maxIDBytes || strings.ContainsRune(id, 0) {
		return request{}, badRequest("the account's id has at most %d bytes of UTF-8, without NUL", maxIDBytes)
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return request{}, badRequest("the query cannot be read")
	}
	asked := request{id: id}
	for name, values := range query {
		if len(values) != 1 {
			return asked, badRequest("%.40q: give it once", name)
		}
		if bad := asked.read(name, values[0]); bad != nil {
			return asked, bad
		}
	}
	return asked, nil
}

func (q *request) read(name, value string) *problem {
	var err error
	switch name {
	case "min_version":
		if q.version, err = strconv.ParseInt(value, 10, 64); err != nil || q.version < 0 {
			return badRequest("min_version: is not a version, a whole number from 0")
		}
	case "wait":
		if q.wait, err = time.ParseDuration(value); err != nil || q.wait < 0 || q.wait > maxWait {
			return badRequest("wait: is not a duration from 0s to %s, such as 5s or 250ms", maxWait)
		}
	default:
		return badRequest("%.40q is unknown; there are min_version and wait", name)
	}
	return nil
}

func badRequest(format string, args ...any) *problem {
	return &problem{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// await waits for the requested version. It returns an error if the client has disconnected, too
// many clients wait, or the server is closed.
func (s *Server) await(ctx context.Context, asked request) (answer, error) {
	w, err := s.register.add(asked.id, asked.version, asked.wait == 0)
	if err != nil {
		return answer{}, err
	}
	defer s.register.remove(w)
	if asked.wait > 0 {
		timer := time.NewTimer(asked.wait)
		defer timer.Stop()
		select {
		case result := <-w.answer:
			return result, nil
		case <-ctx.Done():
			return answer{}, ctx.Err()
		case <-timer.C:
			s.register.expire(w)
		}
	}
	select {
	case result := <-w.answer:
		return result, nil
	case <-ctx.Done():
		return answer{}, ctx.Err()
	}
}

type document struct {
	AccountID  string `json:"account_id"`
	Version    *int64 `json:"version"` // null if no event has been applied
	Stale      bool   `json:"stale"`
	WaitingFor *int64 `json:"waiting_for_version"`
	*money
}

// money has the fields that are sent only with Config.Balances.
type money struct {
	Balance  *string `json:"balance"`  // text, because JSON numbers may be parsed as floats
	Currency *string `json:"currency"` // null if it is not known yet
	Status   *string `json:"status"`
}

func (s *Server) write(w http.ResponseWriter, status int, now *accountdb.Current) {
	d := document{AccountID: now.AccountID, Stale: now.WaitingFor != nil, WaitingFor: now.WaitingFor}
	if s.cfg.Balances {
		d.money = &money{}
	}
	if now.Exists {
		d.Version = &now.Version
	}
	if now.Exists && d.money != nil {
		d.Balance, d.Status = &now.Balance, &now.Status
		if now.Currency != "" {
			d.Currency = &now.Currency
		}
	}
	body, err := json.Marshal(d)
	send(w, status, body, err)
}

// refuse sends a problem as the HTTP response.
func refuse(w http.ResponseWriter, bad *problem) {
	header := w.Header()
	switch bad.status {
	case http.StatusUnauthorized:
		header.Set("WWW-Authenticate", "Bearer")
	case http.StatusMethodNotAllowed:
		header.Set("Allow", "GET, HEAD")
	case http.StatusTooManyRequests:
		header.Set("Retry-After", "1")
	case http.StatusServiceUnavailable:
		header.Set("Retry-After", "1")
		header.Set("Connection", "close") // the next connection may reach an instance that works
	case http.StatusBadRequest:
		header.Set("Connection", "close") // a body may follow, and it is not read
	}
	body, err := json.Marshal(struct {
		Error string `json:"error"`
	}{bad.text})
	send(w, bad.status, body, err)
}

// send sends a document. If err is not nil, it sends an error status instead.
func send(w http.ResponseWriter, status int, body []byte, err error) {
	if err != nil {
		status, body = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client may have disconnected
}
