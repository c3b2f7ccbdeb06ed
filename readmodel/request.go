package readmodel

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/sql"
)

// RequestState is what has become of a request. Its names are public surface.
type RequestState string

// The states of a request.
const (
	RequestOpen     RequestState = "open"
	RequestApproved RequestState = "approved"
	RequestRejected RequestState = "rejected"
	RequestRefused  RequestState = "refused" // its plan had changed
)

// RequestStates are all of them.
func RequestStates() []RequestState {
	return []RequestState{RequestOpen, RequestApproved, RequestRejected, RequestRefused}
}

// Request is a change that a person has asked for while four eyes were on.
type Request struct {
	ID          int64
	At          time.Time
	Action      string
	RequestedBy string // session_user of PostgreSQL
	Actor       string // who that says to be
	Reason      string // empty: none was given
	Records     int64
	State       RequestState
	DecidedBy   string // session_user; empty: no decision yet
	Arguments   []string
}

// RequestedCommand is what the plan of a request is made of, now and when it is approved.
type RequestedCommand struct {
	Arguments []string // without servers and passwords
	Files     []RequestedFile
	Plan      string // SHA-256 of what it would have done then
}

// RequestedFile is the file that a flag of a requested command names, as it was then.
type RequestedFile struct {
	Flag, Name string
	Content    []byte
}

// FourEyes reports whether a change needs a second person to approve it.
func FourEyes(ctx context.Context, pool *pgxpool.Pool) (on bool, err error) {
	if err := pool.QueryRow(ctx, sql.Query("four_eyes")).Scan(&on); err != nil {
		return false, fmt.Errorf("read the policy about repairs: %w", err)
	}
	return on, nil
}

// AddRequest records a request, and returns its number.
func AddRequest(ctx context.Context, pool *pgxpool.Pool, r *Request, c *RequestedCommand) (id int64, err error) {
	flags, names, contents := []string{}, []string{}, [][]byte{}
	for _, f := range c.Files {
		flags, names, contents = append(flags, f.Flag), append(names, f.Name), append(contents, f.Content)
	}
	err = TransactOnce(ctx, pool, func(ctx context.Context, tx *Tx) error {
		return tx.QueryRow(ctx, sql.Query("request_insert"), r.Action, c.Arguments, flags, names, contents, c.Plan, r.Records, r.Actor, r.Reason).Scan(&id)
	})
	if err != nil {
		return 0, fmt.Errorf("record the request: %w", err)
	}
	return id, nil
}

// Requests calls fn with the requests of a state, or with all, the oldest first.
func Requests(ctx context.Context, pool *pgxpool.Pool, state RequestState, fn func(*Request) error) error {
	return eachRequest(ctx, pool, state, nil, fn)
}

func eachRequest(ctx context.Context, pool *pgxpool.Pool, state RequestState, id *int64, fn func(*Request) error) error {
	rows, err := pool.Query(ctx, sql.Query("request_list"), state, id)
	if err != nil {
		return fmt.Errorf("read the requests: %w", err)
	}
	var r Request
	_, err = pgx.ForEachRow(rows, []any{&r.ID, &r.At, &r.Action, &r.RequestedBy, &r.Actor, &r.Reason, &r.Records, &r.State, &r.DecidedBy, &r.Arguments},
		func() error { return fn(&r) })
	if err != nil {
		return fmt.Errorf("read the requests: %w", err)
	}
	return nil
}

// ErrUnknownRequest says that there is no request of that number.
var ErrUnknownRequest = errors.New("no such request")

// FindRequest reads a request.
func FindRequest(ctx context.Context, pool *pgxpool.Pool, id int64) (found Request, err error) {
	err = eachRequest(ctx, pool, "", &id, func(r *Request) error { found = *r; return nil })
	if err == nil && found.ID == 0 {
		err = ErrUnknownRequest
	}
	return found, err
}

// MayApprove reports whether this login may decide about requests.
func MayApprove(ctx context.Context, pool *pgxpool.Pool) (may bool, err error) {
	if err := pool.QueryRow(ctx, sql.Query("request_may_approve")).Scan(&may); err != nil {
		return false, fmt.Errorf("read who may approve: %w", err)
	}
	return may, nil
}

// LoadCommand reads what a request asks for, and as whom the database knows this login.
func LoadCommand(ctx context.Context, pool *pgxpool.Pool, id int64) (c RequestedCommand, login string, err error) {
	var (
		flags, names []string
		contents     [][]byte
	)
	err = pool.QueryRow(ctx, sql.Query("request_load"), id).Scan(&c.Arguments, &flags, &names, &contents, &c.Plan, &login)
	if err != nil {
		return c, "", fmt.Errorf("read the request: %w", err)
	}
	for i, flag := range flags {
		if i >= len(names) || i >= len(contents) {
			break // the row was made by hand: the plan will not be the same
		}
		c.Files = append(c.Files, RequestedFile{flag, names[i], contents[i]})
	}
	return c, login, nil
}

// RequestDecidedError says that a request is not open any more.
type RequestDecidedError struct {
	ID    int64
	State RequestState
}

// Error implements error.
func (e *RequestDecidedError) Error() string { return fmt.Sprintf("request %d is %s", e.ID, e.State) }

// DecideRequest decides about a request. A RequestDecidedError means that another person has
// already.
func DecideRequest(ctx context.Context, pool *pgxpool.Pool, id int64, state RequestState, reason string) error {
	err := TransactOnce(ctx, pool, func(ctx context.Context, tx *Tx) error {
		var changed int64
		tx.Queue(sql.Query("request_decide"), id, state, reason).
			Exec(func(tag pgconn.CommandTag) error { changed = tag.RowsAffected(); return nil })
		if err := tx.Send(ctx); err != nil {
			return err
		}
		if changed == 0 {
			return ErrUnknownRequest
		}
		return nil
	})
	if err == nil {
		return nil
	}
	if now, lost := FindRequest(ctx, pool, id); lost == nil && now.State != RequestOpen {
		return &RequestDecidedError{id, now.State}
	}
	return fmt.Errorf("decide about request %d: %w", id, err)
}

type requestKey struct{}

// WithRequest makes what is changed with the context the doing of an approved request: its
// audit rows say who approved it.
func WithRequest(ctx context.Context, id int64) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// nameRequest has a transaction say which request it carries out.
func nameRequest(ctx context.Context, tx *Tx) {
	if id, given := ctx.Value(requestKey{}).(int64); given {
		tx.Queue(sql.Query("request_name"), strconv.FormatInt(id, 10))
	}
}

// OperatorWritesError says that four eyes cannot be turned on: a login that has to ask could
// do it alone.
type OperatorWritesError struct{ Ways []string }

// Error implements error and names the remedy.
func (e *OperatorWritesError) Error() string {
	return "operators could repair alone: " + strings.Join(e.Ways, ", ") +
		"; run sql/roles.sql again, and take such roles and grants from them"
}

// SafeText vouches for the text: it holds no data.
func (e *OperatorWritesError) SafeText() string { return e.Error() }

// ErrNoOperators says that there is no role projector_operator to take grants from.
var ErrNoOperators = errors.New("there is no role projector_operator")

// Who turned the policy on or off is in the audit trail, too.
const actionFourEyes ActionKind = "four_eyes"

const (
	resultOn  = "on"
	resultOff = "off"
)

// SetFourEyes turns the policy on or off, as the owner, with the grants that go with it, or
// changes nothing. ErrNoOperators means that it is done, and that no grant was.
func SetFourEyes(ctx context.Context, pool *pgxpool.Pool, on bool, actor string) error {
	action := Action{Kind: actionFourEyes, Actor: actor, Result: resultOff}
	if on {
		action.Result = resultOn
	}
	operators := false
	err := TransactOnce(ctx, pool, func(ctx context.Context, tx *Tx) error {
		tx.Queue(sql.Query("four_eyes_set"), on)
		tx.Queue(sql.Grants())
		tx.Queue(sql.Query("four_eyes_roles")).QueryRow(func(row pgx.Row) error { return row.Scan(&operators) })
		QueueActions(tx, []Action{action})
		if err := tx.Send(ctx); err != nil || !on {
			return err
		}
		return refuseLeaks(ctx, tx)
	})
	switch {
	case err != nil:
		return fmt.Errorf("set four eyes: %w", err)
	case on && !operators:
		return ErrNoOperators
	default:
		return nil
	}
}

// CheckFourEyes returns an OperatorWritesError when the policy is on and a grant has given
// operators since what it had taken from them.
func CheckFourEyes(ctx context.Context, pool *pgxpool.Pool) error {
	if on, err := FourEyes(ctx, pool); err != nil || !on {
		return err
	}
	return refuseLeaks(ctx, pool)
}

func refuseLeaks(ctx context.Context, db Querier) error {
	rows, err := db.Query(ctx, sql.Query("four_eyes_leaks"))
	if err != nil {
		return err
	}
	ways, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(ways) > 0 {
		err = &OperatorWritesError{ways}
	}
	return err
}
