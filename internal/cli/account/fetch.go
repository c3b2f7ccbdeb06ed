package account

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/cli/connect"
	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/foureyes"
	"projector/internal/cli/output"
	"projector/internal/cli/projections"
	"projector/internal/outbox"
	"projector/internal/replay"
	"projector/projection/event"
	"projector/readmodel"
)

type gapsFetchCmd struct {
	Account string `group:"Filter" placeholder:"ID" help:"Only what this account waits for."`
	Limit   int    `default:"10000" placeholder:"N" help:"Ask for at most this many versions, of the oldest gaps first (default 10000)."`
	Reason  string `placeholder:"TEXT" help:"Why, for the audit trail."`
	Yes     bool   `help:"Do it. Without it, only print the plan."`
	connect.ActorFlags
	projections.BalanceFlags
	connect.OutboxFlags
	connect.DatabaseFlags
	events.EventFlags
	output.Flags
}

const (
	// planNotFound is the plan for a version that the outbox does not have.
	planNotFound = "not_found"
	// notDone is the result of what the command did not come to.
	notDone = "not_done"
)

// Run asks for what accounts wait for, plans, and with --yes applies it.
func (c *gapsFetchCmd) Run(ctx context.Context, std *output.Streams, gate *foureyes.Gate) error {
	client, formats, err := c.validate()
	if err != nil {
		return err
	}
	defer client.Close()
	pool, err := connect.ReadModel(ctx, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	repair := readmodel.NewRepair(readmodel.RepairConfig{Pool: pool, Formats: formats, FirstVersion: c.FirstVersion})
	wanted, err := c.wanted(ctx, pool)
	if err != nil {
		return err
	}
	f := &fetched{versions: wanted, records: map[outbox.Version]*readmodel.RepairRecord{}, plans: map[outbox.Version]string{}}
	if err := f.ask(ctx, std, client, formats); err != nil {
		return err
	}
	if err := f.plan(ctx, repair); err != nil {
		return err
	}
	if c.Yes {
		if err := gate.Pass(ctx, pool, string(readmodel.ActionFetch), f.planned); err != nil {
			return err
		}
		err = f.apply(ctx, std, repair, c.ActorName(), readmodel.Storable(c.Reason))
	}
	// After an error too: what was done has to be said.
	if printErr := c.print(std, f); err == nil {
		err = printErr
	}
	if failed := f.failed(); err == nil && c.Yes && failed > 0 {
		err = exit.Refusef("%d of %d versions could not be applied", failed, len(f.versions))
	}
	return err
}

func (c *gapsFetchCmd) validate() (*outbox.Client, event.Resolver, error) {
	if err := c.CheckBalance(); err != nil {
		return nil, nil, err
	}
	if c.Limit < 1 {
		return nil, nil, exit.Usagef("--limit: must be at least 1")
	}
	if c.OutboxURL == "" {
		return nil, nil, exit.Usagef("--outbox-url (OUTBOX_URL): say where the producer's outbox is, and with --outbox-query how to ask it")
	}
	client, err := c.Outbox()
	if err != nil {
		return nil, nil, err
	}
	formats, err := c.Formats(c.Taken)
	return client, formats, err
}

// wanted are the versions that accounts wait for, of each account in order.
func (c *gapsFetchCmd) wanted(ctx context.Context, pool *pgxpool.Pool) (wanted []outbox.Version, err error) {
	ctx, cancel := context.WithTimeout(ctx, connect.OneShotWithin)
	defer cancel()
	for m, err := range readmodel.MissingVersions(ctx, pool, readmodel.MissingFilter{AccountID: c.Account}) {
		if err != nil {
			return nil, err
		}
		for v := m.First; v <= m.Last && len(wanted) < c.Limit; v++ {
			wanted = append(wanted, outbox.Version{AccountID: m.AccountID, Number: v})
		}
		if len(wanted) == c.Limit {
			break
		}
	}
	return wanted, nil
}

// fetched is what accounts wait for, and what the outbox has of it.
type fetched struct {
	versions []outbox.Version
	records  map[outbox.Version]*readmodel.RepairRecord
	plans    map[outbox.Version]string
	done     bool // it was to be applied
}

// ask asks for all of it, a part at a time.
func (f *fetched) ask(ctx context.Context, std *output.Streams, client *outbox.Client, formats event.Resolver) error {
	shown := output.NewProgress(std.Err, "asked for")
	defer shown.Done()
	refused, last := 0, outbox.Answer{}
	for rest := f.versions; len(rest) > 0; {
		question := slices.Clone(rest[:min(len(rest), outbox.AskAtOnce)])
		rest = rest[len(question):]
		for whole := false; !whole && len(question) > 0; {
			answer, err := outbox.Fetch(ctx, client, formats, question)
			if err != nil {
				return err
			}
			for v, r := range answer.Records {
				f.records[v] = r
			}
			if answer.Refused > 0 {
				refused, last = refused+answer.Refused, answer
			}
			question = slices.DeleteFunc(question, func(v outbox.Version) bool { return answer.Records[v] != nil })
			whole = answer.Whole
		}
		shown.Update(int64(len(f.versions)-len(rest)), int64(len(f.versions)))
	}
	if refused > 0 {
		shown.Done()
		_, _ = fmt.Fprintf(std.Err, "the outbox returned %d events that are not applied, the last of them (account %s, version %d) because %s; look at --outbox-query\n",
			refused, output.OrDash(output.Printable(last.Last.AccountID)), last.Last.Number, last.Why)
	}
	return nil
}

// found are the records of the versions that the outbox has, in order.
func (f *fetched) found() (records []*readmodel.RepairRecord) {
	for _, v := range f.versions {
		if r := f.records[v]; r != nil {
			records = append(records, r)
		}
	}
	return records
}

func (f *fetched) plan(ctx context.Context, repair *readmodel.Repair) error {
	if err := repair.Plan(ctx, f.found()); err != nil {
		return err
	}
	for _, v := range f.versions {
		f.plans[v] = planNotFound
		if r := f.records[v]; r != nil {
			if f.plans[v] = string(readmodel.EffectOf(r.Decision)); f.plans[v] == string(readmodel.EffectApplied) {
				f.plans[v] = replay.PlanApply
			}
		}
	}
	return nil
}

// planned is what has to be the same when the fetch is approved: the plan and the values.
func (f *fetched) planned(p *foureyes.Plan) error {
	for _, v := range f.versions {
		r := f.records[v]
		if r == nil {
			continue // nothing is to be done
		}
		if err := p.Add(fetchRow{f, v}.Document(), readmodel.ValueDigest(r.Record.Value)); err != nil {
			return err
		}
	}
	return nil
}

func (f *fetched) apply(ctx context.Context, std *output.Streams, repair *readmodel.Repair, actor, reason string) error {
	f.done = true
	records := f.found()
	for _, r := range records {
		outbox.Stamp(r, actor, reason)
	}
	shown := output.NewProgress(std.Err, "applied")
	defer shown.Done()
	done := int64(0)
	return repair.Apply(ctx, records, func(step readmodel.Step) {
		done += int64(step.Records)
		shown.Update(done, int64(len(records)))
	})
}

// result is what became of a version; empty: nothing was to be done.
func (f *fetched) result(v outbox.Version) string {
	switch r := f.records[v]; {
	case !f.done:
		return ""
	case r == nil:
		return planNotFound
	case !r.Decided:
		return notDone
	default:
		return string(readmodel.EffectOf(r.Decision))
	}
}

// failed counts the versions that the account still waits for.
func (f *fetched) failed() (n int) {
	for _, v := range f.versions {
		switch readmodel.Effect(f.result(v)) {
		case readmodel.EffectApplied, readmodel.EffectDuplicate:
		default:
			n++
		}
	}
	return n
}

// fetchDocument is a version in JSON.
type fetchDocument struct {
	AccountID string  `json:"account_id"`
	Version   int64   `json:"version"`
	Plan      string  `json:"plan"`
	Result    *string `json:"result"`
}

// fetchRow is a version with its plan and, when that was carried out, with what became of it.
type fetchRow struct {
	of      *fetched
	version outbox.Version
}

func (r fetchRow) outcome() string { return cmp.Or(r.of.result(r.version), r.of.plans[r.version]) }

// Document implements output.Row.
func (r fetchRow) Document() any {
	return fetchDocument{
		AccountID: r.version.AccountID, Version: r.version.Number, Plan: r.of.plans[r.version],
		Result: output.OrNull(r.of.result(r.version)),
	}
}

// Cells implements output.Row.
func (r fetchRow) Cells() []string {
	why := ""
	if record := r.of.records[r.version]; record != nil {
		why = record.Decision.Message
	}
	return []string{r.outcome(), r.version.AccountID, strconv.FormatInt(r.version.Number, 10), output.OrDash(why)}
}

// print prints the plan and, when it was carried out, the results.
func (c *gapsFetchCmd) print(std *output.Streams, f *fetched) error {
	name := "PLAN"
	if c.Yes {
		name = "RESULT"
	}
	rows := c.Rows(std.Out, "ACCOUNT", output.Left(name, 10), output.Left("ACCOUNT", 14), output.Right("VERSION", 7), output.Text("WHY"))
	counts := map[string]int{}
	for _, v := range f.versions {
		row := fetchRow{f, v}
		counts[row.outcome()]++
		if err := rows.Add(row); err != nil {
			return err
		}
	}
	if err := rows.End("no account waits for an event that is missing"); err != nil || c.JSON() || len(f.versions) == 0 {
		return err
	}
	var parts []string
	for _, name := range []string{
		replay.PlanApply, string(readmodel.EffectApplied), replay.PlanDuplicate, replay.PlanWaiting, replay.PlanPoison, planNotFound, notDone,
	} {
		if counts[name] > 0 {
			parts = append(parts, strconv.Itoa(counts[name])+" "+name)
		}
	}
	text := strings.Join(parts, ", ")
	if !c.Yes {
		text += "; nothing was changed, add --yes to do it"
	}
	_, err := fmt.Fprintln(std.Out, text)
	return err
}
