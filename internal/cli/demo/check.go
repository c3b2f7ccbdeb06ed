package demo

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"projector/internal/testbank"
	"projector/internal/testbank/compare"
	"projector/projection"
	"projector/readmodel"
)

// findings are the results of the check. In this package, the ledger is the oracle of package
// testbank, which computes the expected results.
type findings struct {
	accounts    []string // differences, one for each account
	checked     int
	deadLetters []string // faults in the DLQ, one for each dead letter
	classes     map[string]int
	repeats     int // dead letters published more than once, which is allowed
	counted     counted
	outcomes    []string // outcomes whose counts differ from the ledger
	stale       []staleAccount
	recounted   int // records that Kafka delivered again, which is allowed
}

func (f *findings) matched() bool { return len(f.accounts)+len(f.deadLetters)+len(f.outcomes) == 0 }

// staleAccount is an account that waits for an event. Version is nil if the account has no balance.
type staleAccount struct {
	ID      string
	Version *int64
	Waits   int64
	Class   string
	Events  int64
}

func (d *demo) check(ctx context.Context) (*findings, error) {
	d.progress.Step("checking")
	f := &findings{classes: map[string]int{}}
	for _, checkPart := range []func(context.Context, *findings) error{d.checkAccounts, d.checkDeadLetters, d.checkOutcomes, d.findStale} {
		if err := checkPart(ctx, f); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (d *demo) checkAccounts(ctx context.Context, f *findings) error {
	have, err := compare.Rows(ctx, d.pool, d.accountPrefix)
	if err != nil {
		return err
	}
	rows := d.ledger.Rows()
	f.checked = len(rows)
	for id, want := range rows {
		got, shows := have[id]
		delete(have, id)
		if what := difference(&got, shows, &want); what != "" {
			f.accounts = append(f.accounts, id+": "+what)
		}
	}
	for id := range have {
		f.accounts = append(f.accounts, id+": is unknown to the ledger")
	}
	slices.Sort(f.accounts)
	return nil
}

// difference names the fields that differ from the ledger, or returns "". The text contains no
// amounts.
func difference(got *testbank.Row, shows bool, want *testbank.Row) string {
	switch {
	case !shows:
		return "is missing"
	case got.Stale != want.Stale:
		return fmt.Sprintf("stale is %t", got.Stale)
	case got.WaitingFor != want.WaitingFor:
		return fmt.Sprintf("waits for version %d, not %d", got.WaitingFor, want.WaitingFor)
	case got.Version != want.Version:
		return fmt.Sprintf("version is %d, not %d", got.Version, want.Version)
	case !want.Exists:
		if got.Exists || got.Status != "" {
			return "has a balance without an event"
		}
		return ""
	case got.Currency != want.Currency:
		return fmt.Sprintf("currency is %q, not %q", got.Currency, want.Currency)
	case got.Balance != want.Balance:
		return "balance differs"
	case got.Status != want.Status:
		return fmt.Sprintf("status is %q", got.Status)
	case got.LastEventID != want.LastEventID:
		return "last_event_id differs"
	case !got.LastEventAt.Equal(want.LastEventAt):
		return "last_event_at differs"
	}
	return ""
}

func (d *demo) checkDeadLetters(ctx context.Context, f *findings) error {
	records, err := compare.ReadTopic(ctx, d.run.DeadLetterTopic(), d.reach...)
	if err != nil {
		return err
	}
	reader := compare.Reader{Topic: d.run.Topic, Group: d.run.GroupName(), Projection: readmodel.BalanceName}
	f.deadLetters = reader.WrongDeadLetters(records, d.ledger, compare.Repeated)
	seen := map[string]bool{}
	for _, record := range records {
		added := compare.Split(record).Added
		if added["errors.group"] != reader.Group {
			continue
		}
		class := added["errors.class"]
		id := added["errors.partition"] + "/" + added["errors.offset"] + " " + class
		if seen[id] {
			f.repeats++
			continue
		}
		seen[id] = true
		f.classes[class]++
	}
	return nil
}

const readStale = `
SELECT h.account_id, b.version, h.expected_version, h.class, h.waiting_events
FROM account_hold h
LEFT JOIN account_balance b ON b.account_id = h.account_id
WHERE starts_with(h.account_id, $1)
ORDER BY h.account_id COLLATE "C"`

func (d *demo) findStale(ctx context.Context, f *findings) error {
	rows, err := d.pool.Query(ctx, readStale, d.accountPrefix)
	if err == nil {
		f.stale, err = pgx.CollectRows(rows, pgx.RowToStructByPos[staleAccount])
	}
	if err != nil {
		return fmt.Errorf("read the stale accounts: %w", err)
	}
	return nil
}

// counted has values from the projector's metrics: the number of records of each outcome, and the
// number of parked events that were applied.
type counted struct {
	outcomes map[string]int
	healed   int
}

func (c counted) records() int {
	n := 0
	for _, of := range c.outcomes {
		n += of
	}
	return n
}

// checkOutcomes compares the projector's counts of outcomes with those of the ledger. If Kafka has
// delivered records again, the counts are higher, which is allowed.
func (d *demo) checkOutcomes(_ context.Context, f *findings) error {
	families, err := d.process.Metrics()
	if err != nil {
		return fmt.Errorf("read the metrics: %w", err)
	}
	f.counted.outcomes = map[string]int{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			switch family.GetName() {
			case "projector_records_total":
				for _, label := range metric.GetLabel() {
					if label.GetName() == "outcome" {
						f.counted.outcomes[label.GetValue()] += int(metric.GetCounter().GetValue())
					}
				}
			case "projector_healed_events_total":
				f.counted.healed += int(metric.GetCounter().GetValue())
			}
		}
	}
	if f.recounted = f.counted.records() - d.records; f.recounted > 0 {
		return nil
	}
	all := d.expected()
	for _, o := range projection.Outcomes() {
		outcome := o.String()
		if got, want := f.counted.outcomes[outcome], all[outcome]; got != want {
			f.outcomes = append(f.outcomes, fmt.Sprintf("%s: counted %d, not %d", outcome, got, want))
		}
	}
	return nil
}

func (d *demo) expected() map[string]int {
	all := map[string]int{}
	for _, of := range d.ledger.Outcomes {
		for outcome, n := range of.ByName() {
			all[outcome] += n
		}
	}
	return all
}
