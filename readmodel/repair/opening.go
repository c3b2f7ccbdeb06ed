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

// Opening is the state from which an account starts. The openings of a ledger are sorted by the
// bytes of the account id. Each account has one opening.
type Opening struct {
	AccountID string
	projection.Opening
	// Decision is valid if Decided is true. Apply sets Decision when the decision is durable. Plan
	// sets Decision to what Apply would decide.
	Decision projection.Decision
	Decided  bool
	// Now is the account's balance before it is opened.
	Now accounts.Balance
}

// OpenedBy describes who opens accounts, why, and from which ledger.
type OpenedBy struct {
	Source string // name of the ledger
	SHA256 string // digest of the ledger's file; may be empty
	Actor  string
	Reason string
	// Each is true if the audit trail gets a row per account. Otherwise the trail gets one row per
	// transaction, because writing a row of the trail takes longer than an opening.
	Each bool
}

// Openings opens accounts from a ledger while consumers run. It uses a Repair, and applies waiting
// events in the same way as a replay. It locks more accounts at a time than a replay does, and
// pauses only after a consumer has claimed its partition again.
type Openings struct {
	repair    *Repair
	by        OpenedBy
	fold      *accounts.Fold
	store     accountdb.Store
	consumers *resting
	refused   map[string]string // why PostgreSQL refuses the row, by account
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

// decide opens the accounts in the fold. It ends early if the opened accounts have as many parked
// events as the parameter heals allows.
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

// actions returns the rows of the audit trail for the accounts opened in one transaction.
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

// digest returns the SHA-256 of openings, written as the lines of a ledger without a header. The
// columns are account id, version, balance, currency, status and last event id, as in
// account_opening.
func digest(openings []Opening) string {
	sum := sha256.New()
	lines := csv.NewWriter(sum)
	for i := range openings {
		_ = lines.Write(openings[i].line()) // writing to a hash never fails
	}
	lines.Flush()
	return hex.EncodeToString(sum.Sum(nil))
}

// Digest returns the SHA-256 of the opening.
func (x *Opening) Digest() string { return digest([]Opening{*x}) }

func (x *Opening) line() []string {
	return []string{
		x.AccountID, strconv.FormatInt(x.Version, 10), event.FormatAmount(x.Balance, x.Currency), x.Currency.Code(), accountdb.Status(x.Closed), x.LastEventID,
	}
}
