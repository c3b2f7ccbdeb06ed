package ledger

import (
	"encoding/json"
	"fmt"

	"projector/internal/cli/change"
	"projector/internal/cli/output"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/repair"
)

// These are the plans and results for an account. The names are part of the public output.
const (
	willOpen = "will_open"
	opened   = readmodel.ResultOpened
	kept     = "kept"
	refused  = readmodel.ResultRefused
)

type document struct {
	AccountID string  `json:"account_id"`
	Version   int64   `json:"version"`
	Plan      string  `json:"plan"`
	Result    *string `json:"result"`
	*change.Balances
}

// row is an account with its plan or, after the plan was executed, its result.
type row struct {
	*repair.Opening
	done    bool
	amounts bool // whether balances are shown
}

func (r row) balances() *change.Balances {
	currency := r.Currency
	if currency == (event.Currency{}) {
		currency = r.Now.Currency
	}
	b := &change.Balances{Currency: output.OrNull(currency.Code())}
	if r.Now.Known {
		b.Before = new(json.Number(event.FormatAmount(r.Now.Before, r.Now.Currency)))
	}
	b.After = b.Before
	if r.plan() == willOpen {
		b.After = new(json.Number(event.FormatAmount(r.Balance, currency)))
	}
	return b
}

// plan returns the planned outcome. For an account that PostgreSQL has refused, the plan is still
// will_open, because the refusal was not known before the execution.
func (r row) plan() string {
	switch {
	case r.Decision.Outcome == projection.Duplicate:
		return kept
	case r.Decision.Outcome == projection.DeadLettered && r.Decision.Class != event.RejectedByDatabase:
		return refused
	default:
		return willOpen
	}
}

// outcome returns the result, or the plan if the plan is not executed yet.
func (r row) outcome() string {
	switch plan := r.plan(); {
	case !r.done || plan != willOpen:
		return plan
	case r.Decision.Outcome == projection.DeadLettered:
		return refused
	default:
		return opened
	}
}

func (r row) document() document {
	d := document{AccountID: r.AccountID, Version: r.Version, Plan: r.plan()}
	if r.done {
		d.Result = new(r.outcome())
	}
	if r.amounts {
		d.Balances = r.balances()
	}
	return d
}

func (r row) cells() []any {
	cells := []any{r.outcome(), r.AccountID, r.Version}
	if r.amounts {
		b := r.balances()
		cells = append(cells, b.Before, b.After, b.Currency)
	}
	return append(cells, r.Decision.Message)
}

type rows struct {
	cmd    *open
	on     *change.On
	done   bool
	out    *output.Rows
	counts map[string]int64 // by outcome
	healed int64            // number of parked events that were applied
}

func (c *open) rows(on *change.On, done bool) *rows {
	columns := []output.Column{output.Outcome(done, 9), output.Left("ACCOUNT", 20), output.Right("VERSION", 10)}
	if on.Amounts {
		columns = append(columns, change.BalanceColumns()...)
	}
	columns = append(columns, output.Text("WHY"))
	return &rows{cmd: c, on: on, done: done, counts: map[string]int64{}, out: c.Rows(on.Std.Out, "ACCOUNT", columns...)}
}

// add counts and prints an account. It leaves out an account if no plan or result was decided for
// it, for example after an error.
func (r *rows) add(x *repair.Opening) {
	if !x.Decided {
		return
	}
	one := row{x, r.done, r.on.Amounts}
	r.counts[one.outcome()]++
	if r.cmd.JSON() || r.out.Len() < r.cmd.Limit {
		r.out.Add(one.document(), one.cells()...)
	}
}

func (r *rows) total() (n int64) {
	for _, count := range r.counts {
		n += count
	}
	return n
}

func (r *rows) end(accounts int64) error {
	if err := r.out.End(""); err != nil || r.cmd.JSON() {
		return err
	}
	if rest := r.total() - int64(r.out.Len()); rest > 0 {
		r.on.Std.Notef("%d more accounts are not listed, see --limit\n", rest)
	}
	text := fmt.Sprintf("%d of %d accounts were opened", r.counts[opened], accounts)
	if !r.done {
		text = fmt.Sprintf("%d of %d accounts would be opened", r.counts[willOpen], accounts)
	}
	text += fmt.Sprintf(", %d are kept as they are, %d refused", r.counts[kept], r.counts[refused])
	if r.healed > 0 {
		text += fmt.Sprintf("; %d waiting events were applied", r.healed)
	}
	if !r.done && r.counts[willOpen] > 0 {
		text += "; " + r.on.NothingChanged()
	}
	r.on.Std.Printf("%s\n", text)
	return nil
}
