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

	"projector/errclass"
	"projector/sql"
)

// RequestState is the status of a request. The names are part of the public interface.
type RequestState string

// These are the states of a request. Only an open request can be decided.
const (
	RequestOpen     RequestState = "open"
	RequestApproved RequestState = "approved"
	RequestRejected RequestState = "rejected"
	RequestRefused  RequestState = "refused" // the plan had changed when the request was approved
)

// RequestStates returns all states of a request.
func RequestStates() []RequestState {
	return []RequestState{RequestOpen, RequestApproved, RequestRejected, RequestRefused}
}

// Request is a change that needs the approval of a second person. Its fields are the columns of
// request_list.
type Request struct {
	ID          int64
	At          time.Time
	Action      string
	RequestedBy string // session_user of PostgreSQL
	Actor       string // the name that the person gave
	Reason      string // may be empty
	Records     int64
	State       RequestState
	DecidedBy   string // session_user; empty if there is no decision yet
	Arguments   []string
}

// RequestedCommand is the command of a request. Its plan is computed again at the approval.
type RequestedCommand struct {
	Arguments []string // without servers and passwords
	Files     []RequestedFile
	Plan      string // SHA-256 of the plan at the time of the request
}

// RequestedFile is a file that a flag of the command names, with its content at the time of the
// request.
type RequestedFile struct {
	Flag, Name string
	Content    []byte
}

// FourEyes reports whether a change needs a second person to approve it.
func FourEyes(ctx context.Context, pool *pgxpool.Pool) (on bool, err error) {
	return One[bool](ctx, pool, "read the policy about repairs", "four_eyes")
}

// AddRequest records a request and returns its number.
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

// Requests reads the requests in a state, oldest first. An empty state means all requests.
func Requests(ctx context.Context, pool *pgxpool.Pool, state RequestState) ([]Request, error) {
	return All[Request](ctx, pool, "read the requests", "request_list", state, nil)
}

// ErrUnknownRequest means that there is no request with this number.
var ErrUnknownRequest = errors.New("no such request")

// FindRequest reads a request.
func FindRequest(ctx context.Context, pool *pgxpool.Pool, id int64) (Request, error) {
	found, err := All[Request](ctx, pool, "read the requests", "request_list", "", id)
	if err == nil && len(found) == 0 {
		err = ErrUnknownRequest
	}
	if err != nil {
		return Request{}, err
	}
	return found[0], nil
}

// MayApprove reports whether this login may decide about requests.
func MayApprove(ctx context.Context, pool *pgxpool.Pool) (may bool, err error) {
	return One[bool](ctx, pool, "read who may approve", "request_may_approve")
}

// LoadCommand reads the command of a request, and the name of the current login in the database.
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
			break // somebody wrote the row by hand, so the plan will differ
		}
		c.Files = append(c.Files, RequestedFile{flag, names[i], contents[i]})
	}
	return c, login, nil
}

// TrailRows returns how many rows of the audit trail belong to a request.
func TrailRows(ctx context.Context, pool *pgxpool.Pool, id int64) (n int64, err error) {
	return One[int64](ctx, pool, "read what was done", "request_trail", id)
}

// RequestDecidedError means that a request is not open any more.
type RequestDecidedError struct{ Request Request }

func (e *RequestDecidedError) Error() string {
	return fmt.Sprintf("request %d is %s already, by %s", e.Request.ID, e.Request.State, e.Request.DecidedBy)
}

// DecideRequest approves, rejects or refuses a request. It returns a *RequestDecidedError if the
// request is not open any more.
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
		return &RequestDecidedError{now}
	}
	return fmt.Errorf("decide about request %d: %w", id, err)
}

type requestKey struct{}

// WithRequest marks changes made with this context as part of an approved request. Their audit
// rows then name the requester and the approver.
func WithRequest(ctx context.Context, id int64) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// nameRequest stores in a transaction which request it carries out.
func nameRequest(ctx context.Context, tx *Tx) {
	if id, given := ctx.Value(requestKey{}).(int64); given {
		tx.Queue(sql.Query("request_name"), strconv.FormatInt(id, 10))
	}
}

// ErrNoOperators means that the role projector_operator, whose grants the policy changes, does not
// exist.
var ErrNoOperators = errors.New("there is no role projector_operator")

const (
	resultOn  = "on"
	resultOff = "off"
)

// SetFourEyes turns the four-eyes policy on or off and changes the grants that belong to it, in one
// transaction. Only the schema's owner may call it. ErrNoOperators means that the policy was
// changed and that there were no grants to change.
func SetFourEyes(ctx context.Context, pool *pgxpool.Pool, on bool, actor string) error {
	action := Action{Kind: ActionFourEyes, Actor: actor, Result: resultOff}
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

// CheckFourEyes returns an errclass.Text if the policy is on, but a later grant allows operators to
// write to the tables without approval again.
func CheckFourEyes(ctx context.Context, pool *pgxpool.Pool) error {
	if on, err := FourEyes(ctx, pool); err != nil || !on {
		return err
	}
	return refuseLeaks(ctx, pool)
}

// refuseLeaks returns an errclass.Text if an operator could write to the tables without approval.
// It proposes statements that revoke direct grants, for example those that a rebuild has proposed.
func refuseLeaks(ctx context.Context, db Querier) error {
	ways, err := Texts(ctx, db, "read who can repair alone", "four_eyes_leaks")
	if err != nil || len(ways) == 0 {
		return err
	}
	revokes, err := Texts(ctx, db, "read what to revoke", "four_eyes_revokes")
	if err != nil {
		return err
	}
	text := "operators could repair alone: " + strings.Join(ways, ", ") + ";"
	if len(revokes) > 0 {
		text += " as the owner of these tables or a superuser, type: " + strings.Join(revokes, " ") + " for anything else,"
	}
	return errclass.Text(text + " run sql/roles.sql again, and take such roles and grants from them")
}
