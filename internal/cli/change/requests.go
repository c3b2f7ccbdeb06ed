package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/readmodel"
)

// RequestChoices has the possible values of flags, by the flag's name.
var RequestChoices = map[string][]string{"state": flags.Texts(readmodel.RequestStates())}

// RequestsCmd are the commands that read requests.
type RequestsCmd struct {
	List listCmd `cmd:"" default:"withargs" help:"List the changes that people have requested."`
	Show showCmd `cmd:"" help:"Show what a request asks for, and what would be done now."`
}

type listCmd struct {
	State string `group:"Filter" placeholder:"STATE" help:"Only requests in this state: open, approved, rejected or refused."`
	flags.DatabaseFlags
	output.Flags
}

// Run lists requests, oldest first.
func (c *listCmd) Run(ctx context.Context, std *output.Streams, typed *kong.Context) error {
	state := readmodel.RequestState(c.State)
	if states := readmodel.RequestStates(); state != "" && !slices.Contains(states, state) {
		return exit.Usagef("--state: %q is unknown; use %s", c.State, strings.Join(flags.Texts(states), ", "))
	}
	pool, err := flags.OpenReadModel(ctx, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	rows := c.Rows(std.Out, "REASON", output.Right("ID", 4), output.Left("AT", 20), output.Left("ACTION", 12),
		output.Left("REQUESTED BY", 14), output.Right("RECORDS", 7).Optional(), output.Left("STATE", 8), output.Left("DECIDED BY", 14).Optional(), output.Left("TOPIC", 14).Optional(), output.Text("REASON"))
	requests, err := readmodel.Requests(ctx, pool, state)
	if err != nil {
		return err
	}
	for i := range requests {
		r := &requests[i]
		d := documentOf(typed.Model, r)
		rows.Add(d, r.ID, output.SecondText(r.At), r.Action, r.RequestedBy, r.Records, r.State, r.DecidedBy, topicsText(&d), r.Reason)
	}
	return rows.End("nothing was requested")
}

// topicsText names the topic of a request, and its DLQ topic if that does not have the default name.
func topicsText(d *requestDocument) string {
	switch {
	case d.Topic == nil:
		return ""
	case *d.DLQTopic == *d.Topic+".dlq":
		return *d.Topic
	default:
		return *d.Topic + ", " + *d.DLQTopic
	}
}

// ApproveCmd is the command approve.
type ApproveCmd struct {
	Reason string `required:"" placeholder:"TEXT" help:"Why, for the audit trail."`
	ID     int64  `arg:"" help:"The number of the request."`
	Servers
}

// Run makes the plan of a request again and executes it if it is unchanged.
func (c *ApproveCmd) Run(ctx context.Context, std *output.Streams, typed *kong.Context) error {
	d := decision{c.ID, c.Reason, &c.DatabaseFlags, &c.Flags}
	return d.make(ctx, std, typed.Model, func(pool *pgxpool.Pool, r *requested, reason string) error {
		if r.Login == r.Request.RequestedBy {
			return exit.Refusef("request %d was made by %s, so another login has to approve it", c.ID, r.Login)
		}
		results := std
		if c.JSON() {
			results = &output.Streams{Out: std.Err, Err: std.Err}
		}
		servers := c.Servers
		servers.Flags = output.Flags{} // the result is printed as text
		return r.approve(ctx, results, pool, &servers, reason)
	})
}

// RejectCmd is the command reject.
type RejectCmd struct {
	ID     int64  `arg:"" help:"The number of the request."`
	Reason string `required:"" placeholder:"TEXT" help:"Why not."`
	flags.DatabaseFlags
	output.Flags
}

// Run closes a request without executing it.
func (c *RejectCmd) Run(ctx context.Context, std *output.Streams, typed *kong.Context) error {
	d := decision{c.ID, c.Reason, &c.DatabaseFlags, &c.Flags}
	return d.make(ctx, std, typed.Model, func(pool *pgxpool.Pool, _ *requested, reason string) error {
		return readmodel.DecideRequest(ctx, pool, c.ID, readmodel.RequestRejected, reason)
	})
}

type decision struct {
	id     int64
	reason string
	db     *flags.DatabaseFlags
	print  *output.Flags
}

// make calls the function decide if the request is open, and prints the result.
func (d *decision) make(
	ctx context.Context, std *output.Streams, model *kong.Application, decide func(pool *pgxpool.Pool, r *requested, reason string) error,
) error {
	if err := checkReason(d.reason); err != nil {
		return err
	}
	pool, err := flags.OpenReadModel(ctx, d.db)
	if err != nil {
		return err
	}
	defer pool.Close()
	r, err := loadRequest(ctx, pool, model, d.id)
	if err != nil {
		return err
	}
	if r.Request.State != readmodel.RequestOpen {
		return exit.Refusef("request %d is %s already, by %s", d.id, r.Request.State, r.Request.DecidedBy)
	}
	if err := decide(pool, r, readmodel.Storable(d.reason)); err != nil {
		var late *readmodel.RequestDecidedError
		if errors.As(err, &late) {
			return exit.Refuse(late.Error() + " already, by somebody else; nothing was changed")
		}
		return err
	}
	decided, err := readmodel.FindRequest(ctx, pool, d.id)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("request %d of %s: %s\n", d.id, output.Printable(decided.RequestedBy), decided.State)
	return d.print.Print(std.Out, documentOf(model, &decided), text)
}
