package rebuild

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"projector/readmodel"
	"projector/readmodel/appended"
)

// A comparison holds the differences that were found, and what a swap would do about them.
type comparison struct {
	shadow *Shadow
	opts   CompareOptions
	report Report

	given     map[appended.Key]bool // events applied in a corrected form, by account and version
	corrected map[string]bool       // accounts with such events
	unsure    bool                  // rows may contain corrections by operators
	fetched   map[string]bool       // accounts with events fetched from the outbox
	repaired  map[string]bool       // accounts that operators have changed since the rebuild began
	forgets   bool                  // markers were pruned from the inbox
	uncounted bool                  // some rows may lack events of the topic

	accounts map[string]*accountDifference
	foreign  bool  // some rows that belong to no account have no event in the topic
	refused  error // why no swap is possible; nil if one may be
	left     bool  // some rows or accounts are left alone
	sumsLeft bool  // some rows that belong to no account are left alone
	sums     bool  // some rows that belong to no account are replaced or removed
	behind   bool  // some accounts are behind the live ones, see accountDifference.behind
	notes    map[*rowTable][]string
	unknown  map[string]bool // keys of rows without an event in the topic
	marked   map[string]bool // ids of events that have a marker and were not rebuilt

	live, rebuilt map[string]storedBalance // balances of the listed differences, by account
}

// accountDifference is an account whose state or rows differ.
type accountDifference struct {
	live, rebuilt         *int64 // versions; nil if there is no row
	liveHold, rebuiltHold string // what waits for a missing version; both are empty if the same waits
	state                 bool   // the account's row differs
	digest                int64  // of the rebuilt row, if it differs
	rows                  Kind   // kind of difference of the account's rows that are changed
	listed                bool   // one of its rows is listed
	kind                  Kind   // kind of the difference in the state; empty if there is none
}

func newComparison(s *Shadow, opts CompareOptions) *comparison {
	return &comparison{
		shadow: s, opts: opts, report: Report{Kinds: map[Kind]int64{}},
		accounts: map[string]*accountDifference{}, notes: map[*rowTable][]string{}, unknown: map[string]bool{}, marked: map[string]bool{},
	}
}

// prepare loads the corrections of operators, and whether markers were pruned from the inbox.
func (c *comparison) prepare(ctx context.Context, live readmodel.Querier) (err error) {
	c.given, c.corrected = map[appended.Key]bool{}, map[string]bool{}
	if c.shadow.inbox != nil {
		until, err := c.shadow.kind.Memory().PrunedUntil(ctx, live)
		if c.forgets = !until.IsZero(); err != nil {
			return err
		}
		c.report.Pruned = c.forgets
	}
	for _, e := range c.shadow.build.corrections() {
		c.given[appended.Key{Text: e.accountID, Number: e.version}] = true
		c.corrected[e.accountID] = true
		c.unsure = true
	}
	return nil
}

// loadFetched reads the accounts with events fetched from the outbox. Only the projection
// account_balance has such accounts.
func (c *comparison) loadFetched(ctx context.Context, live readmodel.Querier) error {
	c.fetched = map[string]bool{}
	if a := c.shadow.accounts; a == nil || !a.balances {
		return nil
	}
	fetched, err := readmodel.Texts(ctx, live, "load the fetched events", "rebuild_fetched")
	for _, id := range fetched {
		c.fetched[id] = true
	}
	return err
}

// addDifference is called for a row that differs. At most one of the rows is nil.
type addDifference func(live, rebuilt *row) error

// decide decides about the differences that the function find reports for each table. The parameter
// db may be nil, see the method add.
func (c *comparison) decide(ctx context.Context, db execer, find func(t *rowTable, add addDifference) error) error {
	s := c.shadow
	if s.accounts != nil {
		err := find(s.accounts.account, func(live, rebuilt *row) error { c.addState(live, rebuilt); return nil })
		if err != nil {
			return err
		}
	}
	for _, t := range s.tables {
		if err := find(t, func(live, rebuilt *row) error { return c.addRow(ctx, db, t, live, rebuilt) }); err != nil {
			return err
		}
	}
	c.decideAccounts()
	return nil
}

// addState adds an account whose row or whose waiting events differ.
func (c *comparison) addState(live, rebuilt *row) {
	d := c.account(cmp.Or(live, rebuilt).of.Text)
	l, r := cmp.Or(live, new(row)), cmp.Or(rebuilt, new(row))
	d.live, d.rebuilt = l.version, r.version
	if d.state = (l.version != nil || r.version != nil) && l.digest != r.digest; d.state {
		d.digest = r.digest
	}
	if l.hold != r.hold {
		d.liveHold, d.rebuiltHold = l.hold, r.hold
	}
	c.behind = c.behind || d.behind()
}

func (c *comparison) account(id string) *accountDifference {
	d := c.accounts[id]
	if d == nil {
		d = &accountDifference{}
		c.accounts[id] = d
	}
	return d
}

// addRow adds a row that differs. At most one of the parameters live and rebuilt is nil.
func (c *comparison) addRow(ctx context.Context, db execer, t *rowTable, live, rebuilt *row) error {
	one := cmp.Or(live, rebuilt)
	kind := c.rowKind(t, one, live, rebuilt)
	c.list(Difference{ID: one.id, Kind: kind, Key: []byte(one.key), account: one.of.Text})
	id := ""
	if c.shadow.accounts != nil && t.ofAccounts {
		id = one.of.Text
		c.account(id).listed = true
	}
	if !kind.changes() {
		c.sumsLeft = c.sumsLeft || !t.ofAccounts
		return nil
	}
	c.sums = c.sums || !t.ofAccounts
	// A row may lack events, unless its difference is of the kind Unknown. It is unknown which
	// events it lacks.
	c.uncounted = c.uncounted || kind != Unknown
	c.foreign = c.foreign || kind == Unknown && !t.ofAccounts
	if d := c.accounts[id]; id != "" && d.rows != Unknown {
		d.rows = kind
	}
	return c.add(ctx, db, t, one, kind)
}

// list counts a difference. It also lists the difference, unless the report already lists opts.List
// differences.
func (c *comparison) list(d Difference) {
	c.report.Kinds[d.Kind]++
	c.left = c.left || !d.Kind.changes()
	if len(c.report.Differences) < c.opts.List {
		c.report.Differences = append(c.report.Differences, d)
	}
}

// rowKind returns the kind of a row's difference. The parameter present is the live row, or the
// rebuilt row if there is no live row.
func (c *comparison) rowKind(t *rowTable, present, live, rebuilt *row) Kind {
	f := facts{
		live: live != nil, rebuilt: rebuilt != nil,
		corrected: c.unsure && (live != nil || c.shadow.custom || c.shadow.build.sawAltered()),
		beyond:    c.shadow.later.all || rebuilt == nil && (c.opts.Partial || c.shadow.later.rows[present.of]),
	}
	if t.ofAccounts {
		f.repaired = c.repaired[present.of.Text]
		switch {
		case c.shadow.accounts != nil:
			f.corrected = c.corrected[present.of.Text]
			f.beyond = f.beyond || c.account(present.of.Text).behind()
		case !c.shadow.custom && c.shadow.inbox == nil:
			f.corrected = f.live && c.given[present.of]
		}
	} else {
		f.beyond = f.beyond || c.behind
	}
	kind := f.kind()
	if kind == Unknown {
		c.unknown[present.key] = true
	}
	return kind
}

// decideAccounts sets the kind of each account's difference. If a row of an account is listed, the
// account itself is not listed.
func (c *comparison) decideAccounts() {
	for _, id := range slices.Sorted(maps.Keys(c.accounts)) {
		d := c.accounts[id]
		if !d.state && d.liveHold == d.rebuiltHold {
			continue
		}
		d.kind = c.accountKind(id, d)
		if !d.listed {
			c.list(Difference{ID: id, Kind: d.kind, Version: d.live, Rebuilt: d.rebuilt, account: id})
		}
	}
}

func (c *comparison) accountKind(id string, d *accountDifference) Kind {
	f := facts{
		live: d.live != nil || d.liveHold != "", rebuilt: d.rebuilt != nil || d.rebuiltHold != "",
		repaired: c.repaired[id], onlyHold: !d.state,
	}
	f.corrected = c.corrected[id] && f.live
	if c.shadow.accounts.balances {
		f.beyond = d.ahead() && (f.rebuilt || c.fetched[id])
		f.live = f.live && (d.live != nil || d.rebuilt == nil)
	} else {
		f.live, f.onlyHold = true, true // the account's rows are compared separately
		f.beyond = d.behind()
	}
	f.beyond = f.beyond || !f.rebuilt && (c.opts.Partial || c.shadow.later.accounts[id])
	return f.kind()
}

func (d *accountDifference) ahead() bool {
	return d.live != nil && (d.rebuilt == nil || *d.rebuilt < *d.live)
}

// behind reports whether the rebuilt account has a lower version because its next event cannot be applied.
// If the account has events in several partitions, the rebuild may have read them in another order than
// the consumers. Then it has parked this event, and not another one of the same version that the
// consumers have applied.
func (d *accountDifference) behind() bool {
	return d.ahead() && strings.HasSuffix(d.rebuiltHold, refusedHold)
}

// refusedHold is the end of what waits, in hold_from.sql, if the next event cannot be applied.
const refusedHold = " at a refused event"

// concerned counts the accounts that would be changed. It leaves out accounts whose rows are
// changed, because these accounts are counted with their rows.
func (c *comparison) concerned(removing bool) (n int64) {
	for _, d := range c.accounts {
		if d.rows == "" && d.kind.swapped(removing) {
			n++
		}
	}
	return n
}

// plan returns a hash of the accounts that would be changed, with the kinds of their differences
// and the digests of their rebuilt states.
func (c *comparison) plan(removing bool) string {
	hash := sha256.New()
	for _, id := range slices.Sorted(maps.Keys(c.accounts)) {
		d := c.accounts[id]
		if d.kind.swapped(removing) {
			_, _ = fmt.Fprintf(hash, "%d:%s %s %d %s\n", len(id), id, d.kind, d.digest, d.rebuiltHold)
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil))
}
