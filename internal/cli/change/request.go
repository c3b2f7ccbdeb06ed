package change

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"reflect"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/readmodel"
)

// request stores a change that another login has to approve.
func request(ctx context.Context, on *On, typed *kong.Context, c Change, h *Hash) error {
	stored, err := value(typed.Selected(), c)
	if err != nil {
		return err
	}
	if err := checkFiles(ctx, on.Pool, stored.Files); err != nil {
		return err
	}
	stored.Plan = h.sha256()
	id, err := readmodel.AddRequest(ctx, on.Pool, &readmodel.Request{
		Action: string(c.Action()), Actor: on.Actor, Reason: on.Reason, Records: h.records,
	}, stored)
	if err != nil {
		return err
	}
	on.Std.Notef("four eyes are on: request %d was recorded, and nothing was changed. Another login approves it: projector approve %d --reason=TEXT\n", id, id)
	made, err := readmodel.FindRequest(ctx, on.Pool, id)
	if err != nil {
		return err
	}
	return c.Printed().Print(on.Std.Out, documentOf(typed.Model, &made), fmt.Sprintln(id))
}

// requested is a request with its change.
type requested struct {
	Request readmodel.Request
	Stored  readmodel.RequestedCommand
	Login   string // login of this session

	leaf   *kong.Node
	change Change
	wrong  error // why the change cannot be read
}

// loadRequest reads a request. If its change is invalid, loadRequest succeeds, but show and approve
// return an error.
func loadRequest(ctx context.Context, pool *pgxpool.Pool, model *kong.Application, id int64) (*requested, error) {
	r := new(requested)
	var err error
	r.Request, err = readmodel.FindRequest(ctx, pool, id)
	if errors.Is(err, readmodel.ErrUnknownRequest) {
		return nil, exit.Refusef("there is no request %d; projector requests lists them", id)
	}
	if err != nil {
		return nil, err
	}
	if r.Stored, r.Login, err = readmodel.LoadCommand(ctx, pool, id); err != nil {
		return nil, err
	}
	r.wrong = r.read(model)
	return r, nil
}

// read makes the change from the stored request, or returns an error that says why this is not
// possible.
func (r *requested) read(model *kong.Application) (err error) {
	if r.leaf, r.change, err = read(model, r.Stored.Arguments); err == nil {
		commandOf(r.leaf).adopt(r.change)
		r.change = Of(r.leaf)
		err = readFiles(r.leaf, r.Stored.Files)
	}
	if err != nil {
		return exit.Refusef("request %d %s", r.Request.ID, err)
	}
	if actor, reason := audited(r.change); actor != r.Request.Actor || reason != r.Request.Reason {
		return exit.Refusef("request %d was made by hand: its change has another reason or actor than it is listed with", r.Request.ID)
	}
	return nil
}

// reader returns the flags that a proposed command repeats: those of the requested change, and not
// those of the command that shows or approves it.
func (r *requested) reader() string { return flags.ReaderOf(r.leaf) }

// changed returns why a plan is not the requested one, or "" if it is.
func (r *requested) changed(h *Hash) string {
	switch {
	case h.sha256() != r.Stored.Plan:
		return "the plan has changed since"
	case string(r.change.Action()) != r.Request.Action || h.records != r.Request.Records:
		return "it was made by hand: it is listed as what it is not"
	default:
		return ""
	}
}

// show makes the plan again with the given servers and prints it. If it is not the plan that was
// requested, show prints and returns a warning: what it shows would not be done.
func (r *requested) show(ctx context.Context, std *output.Streams, pool *pgxpool.Pool, servers *Servers, amounts bool) (warning string, err error) {
	ctx = readmodel.WithReader(ctx, r.reader)
	plan, on, err := r.plan(ctx, std, pool, servers, func(on *On) { on.Amounts = amounts })
	defer func() { err = errors.Join(err, on.close()) }()
	if err != nil {
		return "", err
	}
	if r.Request.State == readmodel.RequestOpen && refusal(plan) == nil {
		h, err := hashOf(ctx, r.change.Action(), plan)
		if err != nil {
			return "", err
		}
		if why := r.changed(h); why != "" {
			warning = fmt.Sprintf("`projector approve %d` would refuse this request, for %s", r.Request.ID, why)
			std.Notef("warning: %s\n", warning)
			on.request, on.Whole = nil, true // so that the plan does not propose the approval
		}
	}
	return warning, plan.Print(ctx, false)
}

// approve executes the request if its plan is unchanged.
func (r *requested) approve(ctx context.Context, std *output.Streams, pool *pgxpool.Pool, servers *Servers, reason string) (err error) {
	ctx = readmodel.WithReader(ctx, r.reader)
	plan, on, err := r.plan(ctx, std, pool, servers, func(on *On) { on.Whole, on.Now = true, true })
	defer func() { err = errors.Join(err, on.close()) }()
	if err == nil {
		err = refusal(plan)
	}
	var h *Hash
	if err == nil {
		h, err = hashOf(ctx, r.change.Action(), plan)
	}
	switch {
	case errors.As(err, new(exit.Refusal)):
		return errors.Join(err, r.refuse(ctx, pool, reason, "it cannot be planned any more"))
	case err != nil: // for example an unreachable server or a missing flag: the request stays open
		return untouched(ctx, err)
	}
	if why := r.changed(h); why != "" {
		return r.refuse(ctx, pool, reason, why)
	}
	if err := readmodel.DecideRequest(ctx, pool, r.Request.ID, readmodel.RequestApproved, reason); err != nil {
		return err
	}
	err = do(readmodel.WithRequest(ctx, r.Request.ID), plan)
	if err != nil {
		std.Notef("request %d stays approved, and cannot be approved again: `projector audit` shows what was done; if something is missing, request it again\n", r.Request.ID)
	}
	return err
}

// plan makes the plan of the request again. The caller must close the returned On, even after an error.
func (r *requested) plan(ctx context.Context, std *output.Streams, pool *pgxpool.Pool, servers *Servers, set func(*On)) (Plan, *On, error) {
	on := new(On)
	if r.wrong != nil {
		return nil, on, r.wrong
	}
	if err := checkFiles(ctx, pool, r.Stored.Files); err != nil {
		return nil, on, err
	}
	servers.lend(r.change)
	begun, err := begin(ctx, std, r.change)
	if err != nil {
		return nil, on, err
	}
	begun.request = &r.Request
	set(begun)
	plan, err := r.change.Plan(ctx, begun)
	return plan, begun, err
}

// refuse sets the state of a request to refused, because the request can no longer be executed.
func (r *requested) refuse(ctx context.Context, pool *pgxpool.Pool, reason, why string) error {
	err := readmodel.DecideRequest(ctx, pool, r.Request.ID, readmodel.RequestRefused, reason+"; "+why)
	if err != nil {
		return err
	}
	return exit.Refusef("request %d is refused, for %s; nothing was changed. Look at what would be done now, and request it again", r.Request.ID, why)
}

// requestDocument is a request in JSON.
type requestDocument struct {
	ID          int64                  `json:"id"`
	At          string                 `json:"at"`
	Action      string                 `json:"action"`
	RequestedBy string                 `json:"requested_by"`
	Reason      *string                `json:"reason"`
	Records     int64                  `json:"records"`
	State       readmodel.RequestState `json:"state"`
	DecidedBy   *string                `json:"decided_by"`
	Topic       *string                `json:"topic"`
	DLQTopic    *string                `json:"dlq_topic"`
}

// documentOf returns a request for JSON output. The parameter model contains all commands of the
// program.
func documentOf(model *kong.Application, r *readmodel.Request) requestDocument {
	d := requestDocument{
		ID: r.ID, At: output.TimeText(r.At), Action: r.Action, RequestedBy: r.RequestedBy, Reason: output.OrNull(r.Reason),
		Records: r.Records, State: r.State, DecidedBy: output.OrNull(r.DecidedBy),
	}
	if _, c, err := read(model, r.Arguments); err == nil {
		if kafka, reads := c.(interface{ Kafka() *flags.KafkaFlags }); reads {
			d.Topic, d.DLQTopic = &kafka.Kafka().Topic, new(kafka.Kafka().DeadLetterTopic())
		}
	}
	return d
}

// Servers has the flags of servers, queries and output. A request does not store them, because the
// approver sets them.
type Servers struct {
	flags.KafkaFlags
	flags.DatabaseFlags
	events.RegistryFlags
	flags.OutboxFlags
	flags.LedgerServerFlags
	output.LogFlags
	output.Flags
}

// lend gives a change these flags: each struct that Servers embeds replaces the same one in the change.
// The change keeps the topics of the request.
func (s *Servers) lend(c Change) {
	lent := *s
	if of, reads := c.(interface{ Kafka() *flags.KafkaFlags }); reads {
		lent.Topic, lent.DLQTopic = of.Kafka().Topic, of.Kafka().DLQTopic
	}
	from, to := reflect.ValueOf(lent), reflect.ValueOf(c).Elem()
	for i := range from.NumField() {
		if same := to.FieldByName(from.Type().Field(i).Name); same.IsValid() {
			same.Set(from.Field(i))
		}
	}
}

// Hash is the digest of everything in a plan that must not change between the request and its approval.
type Hash struct {
	sum     hash.Hash
	encoder *json.Encoder
	records int64
	err     error // of a document that cannot be encoded
}

// hashOf returns the hash of a plan. action is the name of the change in the audit trail.
func hashOf(ctx context.Context, action readmodel.ActionKind, plan Plan) (*Hash, error) {
	h := &Hash{sum: sha256.New()}
	h.encoder = json.NewEncoder(h.sum)
	_, _ = io.WriteString(h.sum, string(action)+"\n")
	err := plan.Hash(ctx, h)
	return h, cmp.Or(err, h.err)
}

// Add counts a record that would be changed. It adds documents about the record that must not
// change until the plan is approved, usually the output without --yes.
func (h *Hash) Add(documents ...any) {
	h.records++
	h.Note(documents...)
}

// Note adds other documents that must not change. They do not count as records.
func (h *Hash) Note(documents ...any) {
	for _, d := range documents {
		h.err = cmp.Or(h.err, h.encoder.Encode(d))
	}
}

// Count sets the number of records if they are not added one by one.
func (h *Hash) Count(records int64) { h.records = records }

func (h *Hash) sha256() string { return hex.EncodeToString(h.sum.Sum(nil)) }
