package replay

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"projector/readmodel"
	"projector/readmodel/accounts"
)

// Plans of the contract: what a replay or a fetch would do with an event.
const (
	PlanApply     = "will_apply"
	PlanDuplicate = string(readmodel.EffectDuplicate)
	PlanWaiting   = string(readmodel.EffectWaiting)
	PlanPoison    = string(readmodel.EffectPoison)
	// PlanNotFound is the plan for a version that the outbox does not have.
	PlanNotFound = "not_found"
	// notDone is the result of an event that was not reached.
	notDone = "not_done"
)

// Event is an event with what would be done, or was done, about it.
type Event struct {
	Plan   string
	Result string // empty: nothing was done
	// Record is nil where nothing has to be decided: the plan is fixed.
	Record *readmodel.RepairRecord
}

// Outcome is the plan or, when it was to be done, what became of it.
func (e *Event) Outcome(done bool) string {
	if !done || e.Plan == PlanNotFound {
		return e.Plan
	}
	return cmp.Or(e.Result, notDone)
}

// Balance is the balance of its account before and after the event, as the plan found it.
func (e *Event) Balance() (balance accounts.Balance, known bool) {
	if e.Record == nil {
		return balance, false
	}
	return e.Record.Balance, e.Record.Balance.Known
}

// failed reports whether it was to be applied or published, and was not.
func (e *Event) failed() bool {
	switch e.Outcome(true) {
	case string(readmodel.EffectApplied), string(readmodel.EffectDuplicate), readmodel.ResultPublished:
		return false
	}
	return true
}

// events are events that are planned and applied together.
type events []*Event

func (all events) records() (records []*readmodel.RepairRecord) {
	for _, e := range all {
		if e.Record != nil {
			records = append(records, e.Record)
		}
	}
	return records
}

// plan sets the plan of each event that has to be decided.
func (all events) plan(ctx context.Context, store Applier) error {
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

// apply applies what was planned and sets the results, also when it fails: what was committed
// before stays. shown, which may be nil, is called with how many are done.
func (all events) apply(ctx context.Context, store Applier, shown func(done, total int64)) error {
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

// Counts are how many events have each plan or, when they were to be done, each result.
type Counts map[string]int

// String names what there is of them, the best first.
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
