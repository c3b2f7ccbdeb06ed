// Package ledger has the commands that read an authoritative ledger: open and verify.
package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"projector/internal/cli/change"
	"projector/internal/cli/events"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/ledger"
	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/repair"
)

// OpenCmd is the command open.
type OpenCmd = change.Command[open, *open]

type open struct {
	Limit int `default:"1000" placeholder:"N" help:"In a table, list at most this many accounts; all are counted, and all are in JSON (default 1000)."`
	change.ReasonFlags
	flags.LedgerFlags
	flags.BalanceFlags
	flags.DatabaseFlags
	events.EventFlags
	output.Flags

	formats    event.Resolver
	currencies event.CurrencySet
}

// eachAudited is the largest number of accounts for which each account gets a row in the audit trail.
const eachAudited = 1000

func (*open) Action() readmodel.ActionKind { return readmodel.ActionOpen }

func (c *open) Check() (err error) {
	if err := c.CheckBalance(); err != nil {
		return err
	}
	if c.Limit < 0 {
		return exit.Usagef("--limit (PROJECTOR_LIMIT): must not be negative")
	}
	if err := c.LedgerFlags.Check("SELECT account_id, version, balance, currency FROM account"); err != nil {
		return err
	}
	if c.formats, err = c.Formats(c.CustomTypes); err != nil {
		return err
	}
	c.currencies, err = event.ParseCurrencies(c.Currencies)
	return err
}

// Plan implements change.Change. It reads the ledger. The outcome for each account is computed
// later, in pieces, because a ledger may have millions of accounts.
func (c *open) Plan(ctx context.Context, on *change.On) (change.Plan, error) {
	if err := c.CheckMapping(ctx, on.Pool, readmodel.BalanceName); err != nil { // opening an account applies its parked events
		return nil, err
	}
	reachable, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	source, err := openSource(reachable, &c.LedgerFlags, on.Std)
	if err != nil {
		return nil, err
	}
	on.Later(func() error { source.close(); return nil })
	check := func(e *ledger.Entry) error { _, err := c.opening(e); return err }
	table, err := load(ctx, &c.LedgerFlags, source, ledger.Openings, on.Std, check, "open it in parts")
	if err != nil {
		return nil, err
	}
	config := readmodel.RepairConfig{Pool: on.Pool, Formats: c.formats, FirstVersion: c.FirstVersion}
	return &plan{
		cmd: c, on: on, table: table,
		openings: repair.New(config).Openings(repair.OpenedBy{
			Source: readmodel.Storable(source.name), SHA256: source.sha256(), Actor: on.Actor, Reason: on.Reason,
			Each: table.Len() <= eachAudited,
		}),
	}, nil
}

type plan struct {
	cmd      *open
	on       *change.On
	table    *ledger.Table
	openings *repair.Openings
	rows     *rows
}

func (*plan) DoneInParts() {}

func (p *plan) Hash(ctx context.Context, h *change.Hash) error {
	for piece, err := range p.pieces() {
		if err == nil {
			err = p.openings.Plan(ctx, piece)
		}
		if err != nil {
			return err
		}
		for i := range piece {
			if piece[i].Decision.Outcome == projection.Applied {
				h.Add(row{&piece[i], false, false}.document(), piece[i].Digest())
			}
		}
	}
	return nil
}

// Do implements change.Plan. Accounts are printed while they are opened.
func (p *plan) Do(ctx context.Context) error {
	return p.each("opened", true, func(piece []repair.Opening) error {
		return p.openings.Apply(ctx, piece, func(s readmodel.Step) { p.rows.healed += int64(s.Healed) })
	})
}

func (p *plan) Print(ctx context.Context, done bool) error {
	if p.rows == nil { // no account was printed
		if err := p.each("planned", done, func(piece []repair.Opening) error { return p.openings.Plan(ctx, piece) }); err != nil {
			return err
		}
	}
	if err := p.rows.end(p.table.Len()); err != nil {
		return err
	}
	if n := p.rows.counts[refused]; done && n > 0 {
		return exit.Refusef("%d of %d accounts were refused", n, p.table.Len())
	}
	return nil
}

// each calls the function do for all accounts in pieces and prints the accounts.
func (p *plan) each(what string, done bool, do func([]repair.Opening) error) error {
	p.rows = p.cmd.rows(p.on, done)
	shown := output.NewProgress(p.on.Std.Err, what)
	defer shown.Done()
	for piece, err := range p.pieces() {
		if err == nil {
			err = do(piece)
		}
		for i := range piece {
			p.rows.add(&piece[i])
		}
		if n := p.rows.counts[opened]; err != nil && n > 0 {
			return fmt.Errorf("%d accounts were opened before this; run it again, they are kept then: %w", n, err)
		}
		if err != nil {
			return err
		}
		shown.Update(p.rows.total(), p.table.Len())
	}
	return nil
}

// pieces returns the openings in pieces, sorted by account.
func (p *plan) pieces() iter.Seq2[[]repair.Opening, error] {
	return func(yield func([]repair.Opening, error) bool) {
		var piece []repair.Opening
		for entry := range p.table.Entries() {
			x, err := p.cmd.opening(&entry)
			if err != nil {
				yield(nil, err)
				return
			}
			if piece = append(piece, x); len(piece) < repair.OpeningPiece {
				continue
			}
			if !yield(piece, nil) {
				return
			}
			piece = make([]repair.Opening, 0, repair.OpeningPiece)
		}
		if len(piece) > 0 {
			yield(piece, nil)
		}
	}
}

// opening returns the opening of an account, or a *ledger.FieldError.
func (c *open) opening(e *ledger.Entry) (repair.Opening, error) {
	x := repair.Opening{AccountID: e.AccountID, Opening: projection.Opening{Version: e.Version, LastEventID: e.LastEventID}}
	wrong := func(field, reason string) (repair.Opening, error) {
		return x, &ledger.FieldError{Field: field, Reason: reason}
	}
	if e.Version < c.FirstVersion {
		return wrong(ledger.FieldVersion, fmt.Sprintf("is less than the first version, %d: an account without an event needs no opening", c.FirstVersion))
	}
	if e.Currency != "" {
		var known bool
		if x.Currency, known = c.currencies.Lookup(e.Currency); !known {
			return wrong(ledger.FieldCurrency, "is not among --currencies (CURRENCIES): a code of ISO 4217 such as EUR is needed")
		}
	}
	var err error
	x.Balance, err = event.ParseBalance(e.Balance, x.Currency)
	x.Imprecise = errors.Is(err, event.ErrPrecision)
	switch {
	case e.Currency == "" && (x.Balance != 0 || x.Imprecise):
		return wrong(ledger.FieldCurrency, "is empty, which only an account may have that no money has moved on")
	case err != nil && !x.Imprecise:
		return wrong(ledger.FieldBalance, err.Error())
	case e.Status == "closed":
		x.Closed = true
	case e.Status != "" && e.Status != "open":
		return wrong(ledger.FieldStatus, "is neither open nor closed")
	}
	return x, nil
}
