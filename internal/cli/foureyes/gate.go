// Package foureyes stands between the plan of a command that changes something and its
// doing. While four eyes are on, the plan becomes a request; approving a request is running
// its command once more, through a gate that compares the plans.
//
// A command that changes something:
//
//   - has the flags --yes and, where the contract lists it, --reason, and connect.ActorFlags;
//     its Run takes a *Gate;
//   - without --yes prints its plan, and writes nothing;
//   - with --yes calls Pass once, when it knows what it would do and before it does any of
//     it, and returns the error it gets;
//   - adds each record to the Plan: what it prints of it as JSON and, where that does not
//     say what would be written, a digest of that as well. What goes on by itself (a time,
//     a lag, what consumers write) has no place there: it would make each plan another;
//   - writes with the context it was given, by which the audit trail knows the request.
//
// Of its flags, those for servers have a group of Local or the tag local:"" (URLs, passwords,
// a query that a server is asked), and requests have them too; a file that it reads is a parse.File with the
// tag kept:"", and its content goes with the request. All others are kept as they were. A test
// in internal/cli holds every command to this.
package foureyes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/cli/exit"
	"projector/internal/cli/output"
	"projector/readmodel"
)

// ErrRequested ends a command whose change was requested and not done.
var ErrRequested = errors.New("the change was requested")

// Plan is what a command would do, as a hash.
type Plan struct {
	sum     hash.Hash
	encoder *json.Encoder
	records int64
}

// newPlan begins the plan of an action, which has the name it has in the audit trail.
func newPlan(action string) *Plan {
	p := &Plan{sum: sha256.New()}
	p.encoder = json.NewEncoder(p.sum)
	_, _ = io.WriteString(p.sum, action+"\n")
	return p
}

// Add adds a record that would be changed: what the command prints of it without --yes, and
// whatever else has to be the same when it is approved.
func (p *Plan) Add(documents ...any) error {
	p.records++
	return p.Note(documents...)
}

// Note adds what has to be the same and is no record.
func (p *Plan) Note(documents ...any) error {
	for _, d := range documents {
		if err := p.encoder.Encode(d); err != nil {
			return err
		}
	}
	return nil
}

// Count says how many records there are, where they are not added one by one.
func (p *Plan) Count(records int64) { p.records = records }

func (p *Plan) sha256() string { return hex.EncodeToString(p.sum.Sum(nil)) }

// Gate is passed by every command that was told to change something, once it knows what.
type Gate struct {
	std     *output.Streams
	json    bool
	command *command // that was typed; nil: one that changes nothing
	amounts bool     // see Amounts
	nothing bool     // see Nothing
	// Of a request that is being approved:
	approving *approval
}

// Amounts reports whether the plan is shown to somebody who may approve it: then it has
// amounts and balances.
func (g *Gate) Amounts() bool { return g.amounts }

// Nothing reports whether a second person would have had to approve the plan, and it had no record.
func (g *Gate) Nothing() bool { return g.nothing }

// approval is the doing of a request.
type approval struct {
	request *readmodel.Request
	plan    string // as it was when it was requested
	reason  string
	passed  bool // it was compared with the plan of now, and decided about
}

// Pass lets the change go on when nobody else has to agree, or has agreed to it. Else it
// records a request and returns ErrRequested. plan is asked only for what would be done
// when somebody has to agree.
func (g *Gate) Pass(ctx context.Context, pool *pgxpool.Pool, action string, plan func(*Plan) error) error {
	only, err := g.Only(ctx, pool)
	if err != nil || !only && g.approving == nil {
		return err
	}
	p := newPlan(action)
	if err := plan(p); err != nil {
		return err
	}
	switch {
	case g.approving != nil:
		return g.approving.compare(ctx, pool, action, p)
	case p.records == 0:
		g.nothing = true
		return nil
	default:
		return g.request(ctx, pool, action, p)
	}
}

// Only reports whether what is asked is only recorded now, because somebody else has to agree.
func (g *Gate) Only(ctx context.Context, pool *pgxpool.Pool) (requested bool, err error) {
	if g.approving != nil {
		return false, nil
	}
	return readmodel.FourEyes(ctx, pool)
}

func (g *Gate) request(ctx context.Context, pool *pgxpool.Pool, action string, p *Plan) error {
	asked, err := g.command.requested()
	if err != nil {
		return err
	}
	if err := checkFiles(ctx, pool, asked); err != nil {
		return err
	}
	asked.Plan = p.sha256()
	id, err := readmodel.AddRequest(ctx, pool, &readmodel.Request{
		Action: action, Actor: g.command.actor, Reason: g.command.reason, Records: p.records,
	}, asked)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(g.std.Err, "four eyes are on: request %d was recorded, and nothing was changed. Another login approves it: projector approve %d --reason=TEXT\n", id, id)
	made, err := readmodel.FindRequest(ctx, pool, id)
	if err != nil {
		return err
	}
	if g.json {
		err = output.PrintJSON(g.std.Out, Describe(g.command.parsed.Model, &made))
	} else {
		_, err = fmt.Fprintln(g.std.Out, id)
	}
	if err != nil {
		return err
	}
	return ErrRequested
}

// compare refuses a plan that is not the one that was requested, and else approves it.
func (a *approval) compare(ctx context.Context, pool *pgxpool.Pool, action string, p *Plan) error {
	a.passed = true
	switch {
	case p.sha256() != a.plan:
		return a.refuse(ctx, pool, "the plan has changed since")
	case action != a.request.Action || p.records != a.request.Records:
		return a.refuse(ctx, pool, "it was made by hand: it is listed as what it is not")
	}
	return readmodel.DecideRequest(ctx, pool, a.request.ID, readmodel.RequestApproved, a.reason)
}

// refuse closes a request that cannot be done any more as it was requested.
func (a *approval) refuse(ctx context.Context, pool *pgxpool.Pool, why string) error {
	err := readmodel.DecideRequest(ctx, pool, a.request.ID, readmodel.RequestRefused, a.reason+"; "+why)
	if err != nil {
		return err
	}
	return exit.Refusef("request %d is refused, for %s; nothing was changed. Look at what would be done now, and request it again", a.request.ID, why)
}

// projectionFile is the flag whose file is SQL that runs as whoever approves.
const projectionFile = "projection-file"

// checkFiles refuses a projection file that nobody has run: it would run as whoever approves,
// who has not chosen it.
func checkFiles(ctx context.Context, pool *pgxpool.Pool, c *readmodel.RequestedCommand) error {
	for _, f := range c.Files {
		if f.Flag != projectionFile {
			continue
		}
		sum := sha256.Sum256(f.Content)
		stored, err := readmodel.IsFileStored(ctx, pool, hex.EncodeToString(sum[:]))
		if err != nil {
			return err
		}
		if !stored {
			return exit.Refusef("--projection-file: four eyes are on, and no projection was run from this text of %s; a request takes only the file that projector run has stored", output.Printable(f.Name))
		}
	}
	return nil
}

// Document is a request in JSON.
type Document struct {
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

// Describe is a request as it is printed for programs. model has the commands.
func Describe(model *kong.Application, r *readmodel.Request) Document {
	topic, dlqTopic := topics(model, r.Arguments)
	return Document{
		Topic: output.OrNull(topic), DLQTopic: output.OrNull(dlqTopic),
		ID: r.ID, At: output.TimeText(r.At), Action: r.Action, RequestedBy: r.RequestedBy, Reason: output.OrNull(r.Reason),
		Records: r.Records, State: r.State, DecidedBy: output.OrNull(r.DecidedBy),
	}
}
