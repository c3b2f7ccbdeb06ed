package database

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/readmodel"
)

// AuditCmd are the commands about the audit trail.
type AuditCmd struct {
	List   listCmd   `cmd:"" default:"withargs" help:"List what people have done."`
	Verify verifyCmd `cmd:"" help:"Check whether a row of the audit trail was changed or removed."`
}

// TagVars returns the texts that the parser inserts for ${…} in the tags of this package.
func TagVars() kong.Vars {
	actions := flags.Texts(readmodel.ActionKinds())
	last := len(actions) - 1
	return kong.Vars{
		"audit_actions":        strings.Join(actions, ","),
		"audit_actions_listed": strings.Join(actions[:last], ", ") + " or " + actions[last],
	}
}

type listCmd struct {
	Account   string `group:"Filter" placeholder:"ID" help:"Only what was done to this account."`
	Action    string `group:"Filter" placeholder:"ACTION" default:"" enum:",${audit_actions}" help:"Only this action: ${audit_actions_listed}."`
	ActorName string `group:"Filter" name:"actor" env:"PROJECTOR_AUDIT_ACTOR" placeholder:"NAME" help:"Only what this actor did."`
	Since     string `group:"Filter" placeholder:"WHEN" help:"Only what was done since then: a time (RFC 3339), or an age such as 24h."`
	Until     string `group:"Filter" placeholder:"WHEN" help:"Only what was done before then: a time (RFC 3339), or an age such as 24h."`
	flags.DatabaseFlags
	output.Flags
}

// Run lists the audit trail, oldest first.
func (c *listCmd) Run(ctx context.Context, std *output.Streams) error {
	since, until, err := flags.Window(&c.Since, &c.Until, time.Now())
	if err != nil {
		return err
	}
	filter := readmodel.AuditFilter{AccountID: c.Account, Action: c.Action, Actor: c.ActorName, Since: since, Until: until}
	pool, err := flags.OpenReadModel(ctx, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	rows := c.Rows(std.Out, "REASON", output.Left("AT", 20), output.Left("ACTION", 12), output.Left("ACCOUNT", 14),
		output.Right("VERSION", 7), output.Left("RESULT", 9).Optional(), output.Left("ACTOR", 12),
		output.Left("PROJECTION", 15).Optional(), output.Left("GROUP", 12).Optional(), output.Left("PLACE", 10).Optional(), output.Left("DLQ", 5).Optional(),
		output.Left("REQUEST", 7).Optional(), output.Left("APPROVED BY", 11).Optional(), output.Text("REASON")).Fit()
	err = readmodel.AuditTrail(ctx, pool, filter, func(r *readmodel.AuditRow) error { rows.Add(r, cells(r)...); return rows.Err() })
	if err != nil {
		return err
	}
	return rows.End("nothing was done")
}

func cells(r *readmodel.AuditRow) []any {
	result := r.Result
	if r.Altered {
		result += ", altered"
	}
	request := "" // the approved request and who made it
	if r.RequestID != nil {
		request = fmt.Sprintf("%d by %s", *r.RequestID, output.OrDash(r.RequestedBy))
	}
	return []any{
		output.SecondText(r.At), r.Action, r.AccountID, r.Version, result, r.Actor, r.Projection, r.Group,
		output.PlaceIn(r.Topic, r.Partition, r.Offset), output.PlaceIn(nil, r.DLQPartition, r.DLQOffset), request, r.ApprovedBy, r.Reason,
	}
}

type verifyCmd struct {
	ExpectHead string `placeholder:"HASH" help:"A hash noted earlier: exit status 1 unless it is still in the chain."`
	flags.DatabaseFlags
	output.Flags
}

var sha256Text = regexp.MustCompile(`^[0-9a-f]{64}$`)

type verifyDocument struct {
	Rows     int64             `json:"rows"`
	Head     *string           `json:"head"`
	OK       bool              `json:"ok"`
	Findings []findingDocument `json:"findings"`
}

type findingDocument struct {
	ID   *int64 `json:"id"`
	What string `json:"what"`
}

func (c *verifyCmd) Run(ctx context.Context, std *output.Streams) error {
	if c.ExpectHead != "" && !sha256Text.MatchString(c.ExpectHead) {
		return exit.Usagef("--expect-head: must be a hash as audit verify prints it, 64 digits of 0-9 and a-f")
	}
	pool, err := flags.OpenReadModel(ctx, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	report, err := readmodel.VerifyAudit(ctx, pool, c.ExpectHead)
	if err != nil {
		return err
	}
	doc := verifyDocument{Rows: report.Rows, Head: output.OrNull(report.Head), Findings: []findingDocument{}}
	for _, f := range report.Findings {
		doc.Findings = append(doc.Findings, findingDocument{&f.ID, f.What})
	}
	if c.ExpectHead != "" && !report.HeadFound {
		doc.Findings = append(doc.Findings, findingDocument{nil, "the expected head is not in the chain: rows at its end are missing or were changed"})
	}
	doc.OK = len(doc.Findings) == 0
	if err := c.print(std, &doc); err != nil {
		return err
	}
	if !doc.OK {
		return exit.Refusef("the audit trail is not what was recorded: %d findings", len(doc.Findings))
	}
	return nil
}

func (c *verifyCmd) print(std *output.Streams, doc *verifyDocument) error {
	if c.JSON() {
		return output.PrintJSON(std.Out, doc)
	}
	for _, f := range doc.Findings {
		place := "the end"
		if f.ID != nil {
			place = "row " + strconv.FormatInt(*f.ID, 10)
		}
		std.Printf("%s: %s\n", place, f.What)
	}
	head := "none"
	if doc.Head != nil {
		head = *doc.Head
	}
	std.Printf("rows %d, head %s\n", doc.Rows, head)
	return nil
}
