package change

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/dlq"
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
	return d.make(ctx, std, typed.Model, func(pool *pgxpool.Pool, r *requested, reason string) (results []json.RawMessage, err error) {
		if r.Login == r.Request.RequestedBy {
			return nil, exit.Refusef("request %d was made by %s, so another login has to approve it", c.ID, r.Login)
		}
		return c.documents(std, func(std *output.Streams) error { return r.approve(ctx, std, pool, &c.Servers, reason) })
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
	return d.make(ctx, std, typed.Model, func(pool *pgxpool.Pool, _ *requested, reason string) ([]json.RawMessage, error) {
		return nil, readmodel.DecideRequest(ctx, pool, c.ID, readmodel.RequestRejected, reason)
	})
}

// decidedDocument is a decided request in JSON. If it was approved, it has the results of the change.
type decidedDocument struct {
	requestDocument
	Results []json.RawMessage `json:"results,omitzero"`
}

type decision struct {
	id     int64
	reason string
	db     *flags.DatabaseFlags
	print  *output.Flags
}

// make calls the function decide if the request is open, and prints the result. Results of a change
// that has failed are printed too.
func (d *decision) make(
	ctx context.Context, std *output.Streams, model *kong.Application,
	decide func(pool *pgxpool.Pool, r *requested, reason string) (results []json.RawMessage, err error),
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
		return decidedAlready(ctx, pool, &readmodel.RequestDecidedError{Request: r.Request})
	}
	results, failed := decide(pool, r, readmodel.Storable(d.reason))
	if late, is := errors.AsType[*readmodel.RequestDecidedError](failed); is {
		return decidedAlready(ctx, pool, late)
	}
	if failed != nil && len(results) == 0 {
		return failed
	}
	// The results are printed even if ctx has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flags.OneShotWithin)
	defer cancel()
	decided, err := readmodel.FindRequest(ctx, pool, d.id)
	if err != nil {
		return errors.Join(failed, err)
	}
	text := fmt.Sprintf("request %d of %s: %s\n", d.id, output.Printable(decided.RequestedBy), decided.State)
	return errors.Join(d.print.Print(std.Out, decidedDocument{documentOf(model, &decided), results}, text), failed)
}

// decidedAlready returns the error for a second decision. If the first one was an approval, the error
// says what the audit trail has of the request.
func decidedAlready(ctx context.Context, pool *pgxpool.Pool, is *readmodel.RequestDecidedError) error {
	done, err := trailText(ctx, pool, &is.Request)
	if err != nil {
		return err
	}
	return exit.Refuse(is.Error() + "; nothing was changed by this command" + done)
}

// trailText returns what the audit trail has of an approved request. The approval may have been
// interrupted before the change or in it, and then the request stays approved.
func trailText(ctx context.Context, pool *pgxpool.Pool, r *readmodel.Request) (string, error) {
	if r.State != readmodel.RequestApproved {
		return "", nil
	}
	n, err := readmodel.TrailRows(ctx, pool, r.ID)
	switch {
	case err != nil:
		return "", err
	case n == 0:
		return "; the audit trail has no row of it: unless its approval is still running, request the change again", nil
	default:
		return fmt.Sprintf("; the audit trail has %s of it; if its approval was interrupted, request the rest again", output.Counted(n, "row")), nil
	}
}

type showCmd struct {
	File string `placeholder:"NAME" help:"Print only this file of the request, by its name or by its flag, e.g. from-file."`
	ID   int64  `arg:"" help:"The number of the request."`
	Servers
}

// shownDocument is a request in JSON with the details that an approver needs.
type shownDocument struct {
	requestDocument
	Actor   string            `json:"actor"`
	Command string            `json:"command"`
	Files   []fileDocument    `json:"files"`
	Plan    []json.RawMessage `json:"plan"`
	Warning *string           `json:"warning"`
}

type fileDocument struct {
	Flag   string `json:"flag"`
	Name   string `json:"name"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

type contentDocument struct {
	fileDocument
	Content       *string `json:"content"`
	ContentBase64 *string `json:"content_base64,omitempty"`
}

func describe(f *readmodel.RequestedFile) fileDocument {
	sum := sha256.Sum256(f.Content)
	return fileDocument{Flag: f.Flag, Name: f.Name, Bytes: len(f.Content), SHA256: hex.EncodeToString(sum[:])}
}

// Run shows the command, the files and the present plan of a request. The plan shows amounts if the
// user may approve requests.
func (c *showCmd) Run(ctx context.Context, std *output.Streams, typed *kong.Context) error {
	pool, err := flags.OpenReadModel(ctx, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	r, err := loadRequest(ctx, pool, typed.Model, c.ID)
	if err != nil {
		return err
	}
	if c.File != "" {
		return c.printFile(std.Out, &r.Stored)
	}
	if r.wrong != nil {
		return r.wrong
	}
	// The command names files without their folders. If they are not in the current folder, it fails
	// and changes nothing.
	d := shownDocument{
		requestDocument: documentOf(typed.Model, &r.Request), Actor: r.Request.Actor, Command: commandLine(words(r.leaf)), Files: []fileDocument{},
	}
	for i := range r.Stored.Files {
		d.Files = append(d.Files, describe(&r.Stored.Files[i]))
	}
	amounts, err := readmodel.MayApprove(ctx, pool)
	if err != nil {
		return err
	}
	if c.JSON() {
		return c.printJSON(ctx, std, pool, r, amounts, &d)
	}
	done, err := trailText(ctx, pool, &r.Request)
	if err != nil {
		return err
	}
	printHead(std, &r.Request, &d, done)
	_, err = r.show(ctx, std, pool, &c.Servers, amounts)
	return err
}

func printHead(std *output.Streams, r *readmodel.Request, d *shownDocument, done string) {
	std.Printf("request %d of %s (%s), %s: %s\n%s\n", r.ID, output.Printable(r.RequestedBy), output.Printable(r.Actor), r.State,
		output.OrDash(output.Printable(r.Reason)), d.Command)
	if r.DecidedBy != "" {
		std.Printf("%s by %s%s\n", r.State, output.Printable(r.DecidedBy), done)
	}
	if d.Topic != nil {
		std.Printf("topic %s, DLQ topic %s\n", output.Printable(*d.Topic), output.Printable(*d.DLQTopic))
	}
	for _, f := range d.Files {
		std.Printf("--%s: %s, %d bytes, SHA-256 %s; to read it: projector requests show %d --file=%s\n",
			output.Printable(f.Flag), output.Printable(f.Name), f.Bytes, f.SHA256, r.ID, output.Printable(f.Flag))
	}
}

// printJSON prints one document, even if a plan is no longer possible.
func (c *showCmd) printJSON(ctx context.Context, std *output.Streams, pool *pgxpool.Pool, r *requested, amounts bool, d *shownDocument) (err error) {
	d.Plan, err = c.documents(std, func(std *output.Streams) error {
		warning, err := r.show(ctx, std, pool, &c.Servers, amounts)
		d.Warning = output.OrNull(warning)
		return err
	})
	return errors.Join(output.PrintJSON(std.Out, d), err)
}

// documents calls do. With JSON output it returns the documents that do has printed, one a line.
func (s *Servers) documents(std *output.Streams, do func(std *output.Streams) error) (all []json.RawMessage, err error) {
	if !s.JSON() {
		return nil, do(std)
	}
	var printed bytes.Buffer
	err = do(&output.Streams{Out: &printed, Err: std.Err})
	for line := range bytes.Lines(printed.Bytes()) {
		if line = bytes.TrimSpace(line); json.Valid(line) {
			all = append(all, bytes.Clone(line))
		}
	}
	return all, err
}

// printFile prints a file byte for byte. On a terminal, characters that could be hostile are
// escaped.
func (c *showCmd) printFile(out io.Writer, command *readmodel.RequestedCommand) error {
	var found []*readmodel.RequestedFile
	for i := range command.Files {
		if f := &command.Files[i]; f.Name == c.File || f.Flag == strings.TrimPrefix(c.File, "--") {
			found = append(found, f)
		}
	}
	switch {
	case len(found) == 0:
		return exit.Refusef("request %d has no file %q; it has: %s", c.ID, c.File, listed(command))
	case len(found) > 1:
		return exit.Refusef("request %d has several files %s; name the flag: %s", c.ID, c.File, listed(command))
	}
	content := found[0].Content
	if c.JSON() {
		d := contentDocument{fileDocument: describe(found[0])}
		d.Content, d.ContentBase64 = dlq.TextOrBase64(content)
		return output.PrintJSON(out, d)
	}
	if !output.IsTerminal(output.Unwrapped(out)) {
		out = output.Unwrapped(out) // without escapes, so that a file can be compared byte for byte
	}
	_, err := out.Write(content)
	return err
}

func listed(command *readmodel.RequestedCommand) string {
	var names []string
	for _, f := range command.Files {
		names = append(names, f.Flag+" ("+output.Printable(f.Name)+")")
	}
	slices.Sort(names)
	return output.OrDash(strings.Join(names, ", "))
}
