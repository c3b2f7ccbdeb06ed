// Package open has the command open.
package open

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/cli/connect"
	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/foureyes"
	"projector/internal/cli/fromledger"
	"projector/internal/cli/output"
	"projector/internal/cli/projections"
	"projector/internal/ledger"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
)

// Cmd is the command open.
type Cmd struct {
	Yes    bool   `help:"Do it. Without it, only print the plan."`
	Reason string `required:"" placeholder:"TEXT" help:"Why, for the audit trail."`
	Limit  int    `default:"1000" placeholder:"N" help:"In a table, list at most this many accounts; all are counted, and all are in JSON (default 1000)."`
	connect.ActorFlags
	fromledger.LedgerFlags
	projections.BalanceFlags
	connect.DatabaseFlags
	events.EventFlags
	output.Flags
}

// eachAudited is up to how many accounts of a ledger each have a row in the audit trail.
const eachAudited = 1000

// Run has accounts start from a ledger.
func (c *Cmd) Run(ctx context.Context, std *output.Streams, gate *foureyes.Gate) error {
	if err := c.validate(); err != nil {
		return err
	}
	formats, err := c.Formats(c.Taken)
	if err != nil {
		return err
	}
	lines, err := c.lines()
	if err != nil {
		return err
	}
	c.WarnLedger(std.Err)
	reachable, cancel := context.WithTimeout(ctx, connect.OneShotWithin)
	defer cancel()
	pool, err := connect.ReadModel(reachable, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	source, err := c.Open(reachable)
	if err != nil {
		return err
	}
	defer source.Close()
	table, err := c.Load(ctx, source, ledger.Openings, std, lines.check, "open it in parts")
	if err != nil {
		return err
	}
	repair := readmodel.NewRepair(readmodel.RepairConfig{Pool: pool, Formats: formats, FirstVersion: c.FirstVersion})
	r := &opening{
		cmd: c, std: std, lines: lines, table: table, rows: c.rows(std, gate.Amounts()),
		openings: repair.Openings(readmodel.OpenedBy{
			Source: readmodel.Storable(source.Name()), SHA256: source.SHA256(), Actor: c.ActorName(), Reason: readmodel.Storable(c.Reason),
			Each: table.Len() <= eachAudited,
		}),
	}
	return r.run(ctx, pool, gate)
}

func (c *Cmd) validate() error {
	if err := c.CheckBalance(); err != nil {
		return err
	}
	switch {
	case c.Reason == "":
		return exit.Usagef("--reason: must not be empty")
	case c.Limit < 0:
		return exit.Usagef("--limit (PROJECTOR_LIMIT): must not be negative")
	}
	return c.LedgerFlags.Check("SELECT account_id, version, balance, currency FROM account")
}

// opening is one run of the command.
type opening struct {
	cmd      *Cmd
	std      *output.Streams
	lines    *lines
	table    *ledger.Table
	openings *readmodel.Openings
	rows     *rows
}

func (r *opening) run(ctx context.Context, pool *pgxpool.Pool, gate *foureyes.Gate) error {
	if !r.cmd.Yes {
		return r.plan(ctx)
	}
	nothing := false
	err := gate.Pass(ctx, pool, string(readmodel.ActionOpen), func(p *foureyes.Plan) (err error) {
		nothing, err = r.planned(ctx, p)
		return err
	})
	if err != nil {
		return err
	}
	if nothing { // and this login may not be allowed to change anything
		err = r.each(ctx, "planned", r.openings.Plan)
	} else {
		err = r.each(ctx, "opened", func(ctx context.Context, piece []readmodel.Opening) error {
			return r.openings.Apply(ctx, piece, func(s readmodel.Step) { r.rows.healed += int64(s.Healed) })
		})
	}
	if printed := r.rows.end(r.table.Len()); err == nil {
		err = printed
	}
	if n := r.rows.counts[refused]; err == nil && n > 0 {
		err = exit.Refusef("%d of %d accounts were refused", n, r.table.Len())
	}
	return err
}

// plan says what would be done.
func (r *opening) plan(ctx context.Context) error {
	if err := r.each(ctx, "planned", r.openings.Plan); err != nil {
		return err
	}
	return r.rows.end(r.table.Len())
}

// planned is what has to be the same when it is approved, and whether it is nothing.
func (r *opening) planned(ctx context.Context, p *foureyes.Plan) (nothing bool, err error) {
	nothing = true
	for piece, err := range r.pieces() {
		if err == nil {
			err = r.openings.Plan(ctx, piece)
		}
		if err != nil {
			return false, err
		}
		for i := range piece {
			if piece[i].Decision.Outcome != projection.Applied {
				continue
			}
			nothing = false
			if err := p.Add(row{&piece[i], false, false}.Document(), piece[i].Digest()); err != nil {
				return false, err
			}
		}
	}
	return nothing, nil
}

// each does something with all accounts, and prints what has come of it.
func (r *opening) each(ctx context.Context, what string, do func(context.Context, []readmodel.Opening) error) error {
	shown := output.NewProgress(r.std.Err, what)
	defer shown.Done()
	for piece, err := range r.pieces() {
		if err == nil {
			err = do(ctx, piece)
		}
		for i := range piece {
			if err := r.rows.add(&piece[i]); err != nil {
				return err
			}
		}
		if err != nil {
			return r.interrupted(err)
		}
		shown.Update(r.rows.total(), r.table.Len())
	}
	return nil
}

// interrupted says what an error has left.
func (r *opening) interrupted(err error) error {
	if n := r.rows.counts[opened]; n > 0 {
		return fmt.Errorf("%d accounts were opened before this; run it again, they are kept then: %w", n, err)
	}
	return err
}

// pieces are the openings in the order of their accounts. The next one is made while one is
// worked on.
func (r *opening) pieces() iter.Seq2[[]readmodel.Opening, error] {
	return ahead(func(yield func([]readmodel.Opening, error) bool) {
		var piece []readmodel.Opening
		for entry := range r.table.Entries() {
			x, err := r.lines.opening(&entry)
			if err != nil {
				yield(nil, err)
				return
			}
			if piece = append(piece, x); len(piece) < readmodel.OpeningPiece {
				continue
			}
			if !yield(piece, nil) {
				return
			}
			piece = make([]readmodel.Opening, 0, readmodel.OpeningPiece)
		}
		if len(piece) > 0 {
			yield(piece, nil)
		}
	})
}

// ahead makes the next of all while one is worked on.
func ahead[T any](all iter.Seq2[T, error]) iter.Seq2[T, error] {
	type result struct {
		one T
		err error
	}
	return func(yield func(T, error) bool) {
		var (
			made  = make(chan result)
			stop  = make(chan struct{})
			maker sync.WaitGroup
		)
		maker.Go(func() {
			defer close(made)
			for one, err := range all {
				select {
				case made <- result{one, err}:
				case <-stop:
					return
				}
			}
		})
		defer maker.Wait() // it reads what its owner may close
		defer close(stop)
		for next := range made {
			if !yield(next.one, next.err) {
				return
			}
		}
	}
}

// lines makes openings of the lines of a ledger.
type lines struct {
	currencies   event.CurrencySet
	firstVersion int64
}

func (c *Cmd) lines() (*lines, error) {
	currencies, err := event.ParseCurrencies(c.Currencies)
	return &lines{currencies, c.FirstVersion}, err
}

// check refuses a line from which no account can start.
func (l *lines) check(e *ledger.Entry) error {
	_, err := l.opening(e)
	return err
}

// opening is what an account starts from, or a *ledger.FieldError.
func (l *lines) opening(e *ledger.Entry) (readmodel.Opening, error) {
	x := readmodel.Opening{AccountID: e.AccountID, Opening: projection.Opening{Version: e.Version, LastEventID: e.LastEventID}}
	wrong := func(field, reason string) (readmodel.Opening, error) {
		return x, &ledger.FieldError{Field: field, Reason: reason}
	}
	if e.Version < l.firstVersion {
		return wrong(ledger.FieldVersion, fmt.Sprintf("is less than the first version, %d: an account without an event needs no opening", l.firstVersion))
	}
	if e.Currency != "" {
		var known bool
		if x.Currency, known = l.currencies.Lookup(e.Currency); !known {
			return wrong(ledger.FieldCurrency, "is not among --currencies (CURRENCIES): a code of ISO 4217 such as EUR is needed")
		}
	}
	var err error
	if x.Balance, err = event.ParseBalance(e.Balance, x.Currency); err != nil {
		return wrong(ledger.FieldBalance, err.Error())
	}
	switch {
	case e.Currency == "" && x.Balance != 0:
		return wrong(ledger.FieldCurrency, "is empty, which only an account may have that no money has moved on")
	case e.Status == "closed":
		x.Closed = true
	case e.Status != "" && e.Status != "open":
		return wrong(ledger.FieldStatus, "is neither open nor closed")
	}
	return x, nil
}
