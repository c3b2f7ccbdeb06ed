package replay

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"projector/readmodel"
	"projector/readmodel/accounts"
)

// A plan is what a replay or a fetch would do with an event. The texts of these plans are in the
// output of commands.
const (
	PlanApply     = "will_apply"
	PlanDuplicate = string(readmodel.EffectDuplicate)
	PlanWaiting   = string(readmodel.EffectWaiting)
	PlanPoison    = string(readmodel.EffectPoison)
	// PlanNotFound is the plan for a version that the outbox does not have.
	PlanNotFound = "not_found"
	// notDone is the result of an event that was not processed, because an error came first.
	notDone = "not_done"
)

// Event is an event with its plan and its result.
type Event struct {
	Plan   string
	Result string // empty if the plan was not executed
	// Record is the event as Store.Plan and Store.Apply receive it. It is nil if the plan was made
	// without the database.
	Record *readmodel.RepairRecord
}

// Outcome returns the plan or, if done is true, the result.
func (e *Event) Outcome(done bool) string {
	if !done || e.Plan == PlanNotFound {
		return e.Plan
	}
	return cmp.Or(e.Result, notDone)
}

// Balance returns the account's balance before and after the event, as it was when the plan was
// made.
func (e *Event) Balance() (balance accounts.Balance, known bool) {
	if e.Record == nil {
		return balance, false
	}
	return e.Record.Balance, e.Record.Balance.Known
}

// events are events that are planned and applied together.
type events []*Event

// failed returns how many events should have been applied or published but were not.
func (all events) failed() (n int) {
	for _, e := range all {
		switch e.Outcome(true) {
		case string(readmodel.EffectApplied), string(readmodel.EffectDuplicate), readmodel.ResultPublished:
		default:
			n++
		}
	}
	return n
}

func (all events) records() (records []*readmodel.RepairRecord) {
	for _, e := range all {
		if e.Record != nil {
			records = append(records, e.Record)
		}
	}
	return records
}

// plan asks the database for the plan of each event that has a Record.
func (all events) plan(ctx context.Context, store readmodel.Replayer) error {
	if err := store.Plan(ctx, all.records()); err != nil {
		return err
	}
	for _, e := range all {
		if e.Record == nil {
			continue
		}
		if e.Plan = string(readmodel.EffectOf(e.Record.Decision)); e.Plan == string(readmodel.EffectApplied) {
			e.Plan = PlanApply
		}
	}
	return nil
}

// apply executes the plan. It sets the results even after an error, because committed transactions
// are not rolled back. The function shown, which may be nil, is called with the progress.
func (all events) apply(ctx context.Context, store readmodel.Replayer, shown func(done, total int64)) error {
	done := int64(0)
	err := store.Apply(ctx, all.records(), func(step readmodel.Step) {
		if done += int64(step.Records); shown != nil {
			shown(done, int64(len(all)))
		}
	})
	for _, e := range all {
		if e.Record != nil && e.Record.Decided {
			e.Result = string(readmodel.EffectOf(e.Record.Decision))
		}
	}
	return err
}

// Counts has the number of events for each plan or result.
type Counts map[string]int

// String lists the counts that are not 0, beginning with the best outcome.
func (c Counts) String() string {
	var parts []string
	for _, name := range []string{
		PlanApply, string(readmodel.EffectApplied), readmodel.ResultPublished, PlanDuplicate, PlanWaiting,
		PlanPoison, readmodel.ResultRefused, PlanNotFound, notDone,
	} {
		if c[name] > 0 {
			parts = append(parts, strconv.Itoa(c[name])+" "+name)
		}
	}
	return strings.Join(parts, ", ")
}
