package repair

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"projector/projection"
	"projector/projection/event"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/accounts"
)

// Opening is what one account is to start from. Those of a ledger are sorted by account id,
// in the order of bytes, and there is one an account.
type Opening struct {
	AccountID string
	projection.Opening
	// Decision is set when Decided: by Apply when it is durable, by Plan as it would be.
	Decision projection.Decision
	Decided  bool
	// Now is the balance that the account has before it is opened.
	Now accounts.Balance
}

// OpenedBy says who opens accounts, why, and from which ledger.
type OpenedBy struct {
	Source string // where the ledger is
	SHA256 string // of the ledger's file; empty: it has none
	Actor  string
	Reason string
	// Each: the audit trail gets a row for each account. Otherwise it gets one for each
	// transaction, because a row of the trail takes longer than an opening.
	Each bool
}

// Openings has accounts start from a ledger while consumers run. They are opened
// with the machinery of a Repair, and healed as after a replay; what differs is how many
// of them are locked at a time, and that there is no rest while no consumer is overtaken.
type Openings struct {
	repair    *Repair
	by        OpenedBy
	fold      *accounts.Fold
	store     accountdb.Store
	consumers *resting
	refused   map[string]string // why PostgreSQL refuses an account's row
	again     bool              // some of the accounts were opened before
}

// Openings prepares to open accounts.
func (r *Repair) Openings(by OpenedBy) *Openings {
	o := &Openings{repair: r, by: by, refused: map[string]string{}, consumers: &resting{pool: r.db(), ends: r.cfg.Ends, always: true}}
	o.store = r.storeOf(r.db())
	o.fold = accounts.NewFold(r.options(), &o.store)
	return o
}

// Plan sets each Decision to what Apply would do now, and changes nothing.
func (o *Openings) Plan(ctx context.Context, openings []Opening) error {
	return readmodel.Patiently(ctx, func(ctx context.Context) error {
		o.store.DB = o.repair.db()
		o.fold.Reset()
		decisions, err := o.decide(ctx, openings, math.MaxInt64)
		if err != nil {
			return fmt.Errorf("plan: %w", err)
		}
		decided(openings, decisions)
		return nil
	})
}

// decide has the fold open the accounts, and ends when so many parked events may heal after
// those it has opened.
func (o *Openings) decide(ctx context.Context, openings []Opening, heals int64) ([]projection.Decision, error) {
	if err := o.fold.Read(ctx, openedIDs(openings)); err != nil {
		return nil, err
	}
	decisions := make([]projection.Decision, 0, len(openings))
	for i := 0; i < len(openings) && heals > 0; i++ {
		x := &openings[i]
		if reason := o.refused[x.AccountID]; reason != "" {
			decisions = append(decisions, projection.Decision{Outcome: projection.DeadLettered, Class: event.RejectedByDatabase, Message: reason})
			continue
		}
		x.Now = o.fold.BalanceOf(x.AccountID)
		decision, parked := o.fold.Open(x.AccountID, &x.Opening)
		decisions, heals = append(decisions, decision), heals-parked
	}
	return decisions, nil
}

// decided notes the decisions about the first of the openings.
func decided(openings []Opening, decisions []projection.Decision) {
	for i := range decisions {
		openings[i].Decision, openings[i].Decided = decisions[i], true
	}
}

func openedIDs(openings []Opening) []string {
	ids := make([]string, len(openings))
	for i := range openings {
		ids[i] = openings[i].AccountID
	}
	return ids
}

// actions are the rows of the audit trail for accounts that are opened in one transaction.
func (o *Openings) actions(openings []Opening) []readmodel.Action {
	one := readmodel.Action{Kind: readmodel.ActionOpen, Projection: readmodel.BalanceName, Actor: o.by.Actor, Reason: o.by.Reason, Result: readmodel.ResultOpened, OriginalSHA256: o.by.SHA256}
	if !o.by.Each {
		one.ValueSHA256 = digest(openings)
		first, last := openings[0].AccountID, openings[len(openings)-1].AccountID
		return []readmodel.Action{one.Because(fmt.Sprintf("%d accounts from %q to %q", len(openings), first, last))}
	}
	actions := make([]readmodel.Action, len(openings))
	for i := range openings {
		actions[i] = one
		actions[i].AccountID, actions[i].Version = openings[i].AccountID, &openings[i].Version
		actions[i].ValueSHA256 = digest(openings[i : i+1])
	}
	return actions
}

// digest is the SHA-256 of openings as the lines of a ledger, without a header: account id,
// version, balance, currency, status and last event id, as account_opening has them.
func digest(openings []Opening) string {
	sum := sha256.New()
	lines := csv.NewWriter(sum)
	for i := range openings {
		_ = lines.Write(openings[i].line()) // a hash takes anything
	}
	lines.Flush()
	return hex.EncodeToString(sum.Sum(nil))
}

// Digest is the SHA-256 of the opening.
func (x *Opening) Digest() string { return digest([]Opening{*x}) }

func (x *Opening) line() []string {
	return []string{
		x.AccountID, strconv.FormatInt(x.Version, 10), event.FormatAmount(x.Balance, x.Currency), x.Currency.Code(), accountdb.Status(x.Closed), x.LastEventID,
	}
}
