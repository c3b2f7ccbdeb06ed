package account

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/statement"
)

type accountStatementCmd struct {
	ID           string `arg:"" help:"The account."`
	Since        string `group:"Filter" placeholder:"WHEN" help:"Only events that occurred since then: a time (RFC 3339), or an age such as 24h."`
	Until        string `group:"Filter" placeholder:"WHEN" help:"Only events that occurred before then: a time (RFC 3339), or an age such as 24h."`
	VersionFrom  *int64 `group:"Filter" placeholder:"N" help:"Only events from this version on."`
	VersionTo    *int64 `group:"Filter" placeholder:"N" help:"Only events up to and including this version."`
	FirstVersion int64  `env:"FIRST_VERSION" default:"1" placeholder:"N" group:"Events" help:"Version of an account's first event (default 1)."`
	flags.StatementFlags
	flags.DatabaseFlags
	output.Flags
}

type statementDocument struct {
	Version        int64        `json:"version"`
	EventID        string       `json:"event_id"`
	EventType      string       `json:"event_type"`
	Amount         *json.Number `json:"amount"`
	Currency       *string      `json:"currency"`
	RunningBalance *json.Number `json:"running_balance"`
	OccurredAt     string       `json:"occurred_at"`
	Topic          *string      `json:"topic"`
	Partition      *int32       `json:"partition"`
	Offset         *int64       `json:"offset"`
}

func (c *accountStatementCmd) Run(ctx context.Context, std *output.Streams) error {
	query, err := c.query()
	if err != nil {
		return err
	}
	pool, err := flags.OpenReadModel(ctx, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	rows := c.Rows(std.Out, "EVENT", output.Right("VERSION", 8), output.Left("OCCURRED", 24), output.Left("TYPE", 14), output.Right("AMOUNT", 14),
		output.Right("BALANCE", 14), output.Left("CURRENCY", 8), output.Left("RECORD", 24).Optional(), output.Left("EVENT", 12).Optional())
	sum, err := statement.Account(ctx, pool, query, func(l *statement.Line) error { addLine(rows, l); return rows.Err() })
	if err != nil {
		return c.failure(err)
	}
	if err := rows.End("no event of the account is in this range"); err != nil {
		return err
	}
	c.explain(std, &sum)
	return nil
}

func (c *accountStatementCmd) query() (statement.Query, error) {
	q := statement.Query{AccountID: readmodel.Storable(c.ID), FirstVersion: c.FirstVersion, From: c.VersionFrom, To: c.VersionTo}
	if err := cmp.Or(c.Check(), events.CheckFirstVersion(c.FirstVersion)); err != nil {
		return q, err
	}
	if c.VersionFrom != nil && c.VersionTo != nil && *c.VersionFrom > *c.VersionTo {
		return q, exit.Usagef("--version-to: must not be less than --version-from")
	}
	var err error
	q.Since, q.Until, err = flags.Window(&c.Since, &c.Until, time.Now())
	return q, err
}

func (c *accountStatementCmd) failure(err error) error {
	switch {
	case errors.Is(err, accountdb.ErrUnknownAccount):
		return exit.Refusef("account %q is unknown: no event of it is in the statement", c.ID)
	case errors.Is(err, statement.ErrNeverRun):
		return exit.Refusef("there is no statement of any account: nobody has run `projector run --projection=%s` on this database", statement.Name)
	case errors.Is(err, statement.ErrNoEntry):
		return exit.Refusef("account %q has a balance and nothing in the statement: %s", c.ID, c.remedy())
	default:
		return err
	}
}

// remedy returns the commands that show why entries are missing.
func (c *accountStatementCmd) remedy() string {
	return fmt.Sprintf("see `projector lag --projection=%s`, and `projector dlq list --projection=%[1]s --account=%[2]s`; "+
		"`projector rebuild --projection=%[1]s --check` says whether the topic has lost records", statement.Name, flags.ShellWord(c.ID))
}

func (c *accountStatementCmd) explain(std *output.Streams, sum *statement.Summary) {
	say := func(format string, args ...any) { std.Notef(format+"\n", args...) }
	if sum.Opening != nil {
		say("the account was opened at version %d: its statement begins after that, with the balance of that time", *sum.Opening)
	}
	if sum.Missing > 0 {
		say("%s without an entry, the first of them %d (up to %d): from there on the running balance is unknown; %s",
			output.Counted(sum.Missing, "version"), sum.First.From, sum.First.To, c.remedy())
	}
	if sum.Other != 0 {
		say("version %d is in another currency than those before it, or its amount is no number: from there on the running balance is unknown", sum.Other)
	}
	if n := len(sum.Skipped); n > 0 && sum.Shown > 0 {
		say("versions that were skipped on purpose and add nothing: %s; see `projector audit --action=skip --account=%s`", someVersions(sum.Skipped), flags.ShellWord(c.ID))
	}
	switch b := sum.Balance; {
	case sum.Behind:
		say("the statement ends with version %d and the balance is at version %d: what is between is not in it; %s", sum.Through, *b, c.remedy())
	case b != nil && sum.Last > *b:
		say("the balance is at version %d: later entries are not in it yet; see `projector account show -- %s`", *b, flags.ShellWord(c.ID))
	}
	if sum.Differs {
		say("the statement does not add up to the balance, which is at version %d: `projector rebuild` says which of the two is wrong, "+
			"with --projection=%s for the statement", *sum.Balance, statement.Name)
	}
	c.explainPlaces(say, sum)
}

func (c *accountStatementCmd) explainPlaces(say func(string, ...any), sum *statement.Summary) {
	switch {
	case sum.Shown == 0:
	case len(sum.Topics) > 1:
		say("entries have come from more than one topic (%s): which of them it was of each is not known", output.Printable(strings.Join(sum.Topics, ", ")))
	case sum.Recreated:
		say("the topic was recreated: entries from before then were in the topic that is gone")
	}
	if sum.Unplaced > 0 {
		say("%d entries are from before their places were kept", sum.Unplaced)
	}
}

// someVersions returns a text with the first versions, and with the number of the versions after
// them.
func someVersions(versions []int64) string {
	const most = 5
	var texts []string
	for _, v := range versions[:min(most, len(versions))] {
		texts = append(texts, strconv.FormatInt(v, 10))
	}
	if more := len(versions) - most; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}

func addLine(rows *output.Rows, l *statement.Line) {
	d := statementDocument{
		Version: l.Version, EventID: l.EventID, EventType: l.EventType, Amount: output.NumberOrNull(l.Amount), Currency: l.Currency,
		RunningBalance: output.NumberOrNull(l.Running), OccurredAt: output.TimeText(l.OccurredAt),
		Topic: l.Topic, Partition: l.Partition, Offset: l.Offset,
	}
	running := "unknown"
	if l.Running != nil {
		running = *l.Running
	}
	rows.Add(d, l.Version, output.TimeText(l.OccurredAt), l.EventType, l.Amount, running, l.Currency,
		output.PlaceIn(l.Topic, l.Partition, l.Offset), l.EventID)
}
