package ledger

import (
	"context"
	"encoding/json"
	"iter"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/ledger"
	"projector/readmodel/accountdb"
)

// VerifyCmd is the command verify.
type VerifyCmd struct {
	LedgerAt     string  `env:"LEDGER_AT" placeholder:"TIME" group:"Ledger" help:"When the ledger was read: RFC 3339, or an age such as 1h. An account unknown to it that was written since counts as ahead. Default: with --ledger-url the time of the query, with --ledger none."`
	Sample       *int    `placeholder:"N" help:"Compare only this many accounts of the ledger, drawn at random. Accounts unknown to the ledger are not searched for."`
	Limit        int     `default:"1000" placeholder:"N" help:"List at most this many differences; all are counted (default 1000)."`
	MinCompared  float64 `default:"0" placeholder:"SHARE" help:"Exit with 1 also when less than this share of the accounts could be compared, from 0 to 1: for a job that nobody watches (default 0: at least one account)."`
	ListBehind   bool    `help:"Also list the accounts that are behind the ledger: after an accepted loss, those that lack events."`
	ShowBalances bool    `help:"Show balances, which are otherwise masked."`
	flags.LedgerFlags
	flags.DatabaseFlags
	output.Flags
}

// sampleChunk is how many accounts of a sample one query reads.
const sampleChunk = 5000

// Run compares the read model with the ledger.
func (c *VerifyCmd) Run(ctx context.Context, std *output.Streams) error {
	if err := c.validate(); err != nil {
		return err
	}
	reachable, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	source, err := openSource(reachable, &c.LedgerFlags, std)
	if err != nil {
		return err
	}
	defer source.close()
	pool, err := flags.OpenReadModel(reachable, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	since, err := c.since(ctx, pool)
	if err != nil {
		return err
	}
	entries, err := inOrder(ctx, &c.LedgerFlags, source, ledger.Balances, std)
	if err != nil {
		return err
	}
	compared := output.NewProgress(std.Err, "compared")
	report, err := c.compare(ctx, pool, entries, since, func(n int64) { compared.Update(n, 0) })
	compared.Done()
	if err != nil {
		return err
	}
	if err := c.print(std, &report); err != nil {
		return err
	}
	return c.verdict(&report)
}

// compareLater says what to do if too few accounts have the ledger's version.
const compareLater = "see `projector lag` and `projector gaps` for those behind, and take a newer ledger for those ahead"

// verdict returns an error if the read model differs from the ledger, or if too few accounts could be
// compared.
func (c *VerifyCmd) verdict(r *ledger.Report) error {
	compared := r.Matched + r.Different
	switch {
	case r.Checked == 0: // a comparison with a ledger that has accounts checks each of them
		return exit.Refuse("the ledger has no accounts: nothing could be compared")
	case r.Different > 0:
		return exit.Refusef("%d of %d accounts differ from the ledger", r.Different, r.Checked)
	case compared == 0:
		return exit.Refusef("nothing could be compared: %d accounts are behind the ledger's versions, %d ahead of them; %s", r.Behind, r.Ahead, compareLater)
	case float64(compared) < c.MinCompared*float64(r.Checked):
		return exit.Refusef("only %d of %d accounts could be compared, less than --min-compared=%g: %d are behind the ledger's versions, %d ahead of them; %s",
			compared, r.Checked, c.MinCompared, r.Behind, r.Ahead, compareLater)
	default:
		return nil
	}
}

func (c *VerifyCmd) validate() error {
	if err := c.Check("SELECT account_id, version, balance FROM account"); err != nil {
		return err
	}
	switch {
	case c.Sample != nil && *c.Sample < 1:
		return exit.Usagef("--sample (PROJECTOR_SAMPLE): must be at least 1; without it all accounts are compared")
	case !(c.MinCompared >= 0 && c.MinCompared <= 1): // also true for NaN
		return exit.Usagef("--min-compared (PROJECTOR_MIN_COMPARED): must be a share from 0 to 1, such as 0.9")
	case c.Limit < 0:
		return exit.Usagef("--limit (PROJECTOR_LIMIT): must not be negative")
	}
	_, err := flags.Moment("--ledger-at", c.LedgerAt, time.Now())
	return err
}

// since returns the time of the ledger's data by the clock of the read model's database. It returns
// nil if the time is not known.
func (c *VerifyCmd) since(ctx context.Context, pool *pgxpool.Pool) (*time.Time, error) {
	if c.LedgerAt == "" && c.LedgerURL == "" {
		return nil, nil
	}
	now, err := accountdb.Clock(ctx, pool)
	if err != nil || c.LedgerAt == "" {
		return &now, err
	}
	at, err := flags.Moment("--ledger-at", c.LedgerAt, now)
	return &at, err
}

// compare compares a snapshot of the read model with an older snapshot of the ledger. So an account
// that is written between these snapshots counts as ahead of the ledger, not as behind.
func (c *VerifyCmd) compare(
	ctx context.Context, pool *pgxpool.Pool, entries iter.Seq2[ledger.Entry, error], since *time.Time, shown func(int64),
) (report ledger.Report, err error) {
	var drawn []ledger.Entry
	if c.Sample != nil {
		if drawn, err = ledger.Sample(entries, *c.Sample, rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))); err != nil { //nolint:gosec // G404: no secret
			return report, err
		}
		entries = withoutErrors(slices.Values(drawn))
	}
	next, stop := iter.Pull2(entries)
	defer stop()
	comparison, err := ledger.NewComparison(next, c.Limit)
	if err != nil {
		return report, err
	}
	if comparison.Ended() { // the accounts of the read model are not listed as unknown
		return report, nil
	}
	comparison.ListBehind = c.ListBehind
	compare := func(a *accountdb.SnapshotAccount) error {
		shown(comparison.Checked())
		return comparison.Compare(&ledger.Account{ID: a.ID, Exists: a.Exists, Version: a.Version, Balance: a.Balance, Since: a.Since})
	}
	err = accountdb.ReadSnapshot(ctx, pool, func(s *accountdb.Snapshot) error {
		if c.Sample == nil {
			return s.Accounts(ctx, since, compare)
		}
		for chunk := range slices.Chunk(drawn, sampleChunk) {
			if err := s.Some(ctx, accountsOf(chunk), compare); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return report, err
	}
	return comparison.End()
}

func accountsOf(entries []ledger.Entry) []string {
	ids := make([]string, len(entries))
	for i := range entries {
		ids[i] = entries[i].AccountID
	}
	return ids
}

type verifyDocument struct {
	Checked     int64 `json:"checked"`
	Matched     int64 `json:"matched"`
	Behind      int64 `json:"behind"`
	Ahead       int64 `json:"ahead"`
	Different   int64 `json:"different"`
	Differences []any `json:"differences"`
}

type differenceDocument struct {
	AccountID     string      `json:"account_id"`
	Kind          ledger.Kind `json:"kind"`
	LedgerVersion *int64      `json:"ledger_version"`
	Version       *int64      `json:"version"`
}

// shownDifference is a difference with the balances of the ledger and the read model.
type shownDifference struct {
	differenceDocument
	LedgerBalance *json.Number `json:"ledger_balance"`
	Balance       *json.Number `json:"balance"`
}

func (c *VerifyCmd) print(std *output.Streams, r *ledger.Report) error {
	listed := r.Different
	if c.ListBehind {
		listed += r.Behind
	}
	if rest := listed - int64(len(r.Differences)); rest > 0 {
		std.Notef("%d more differences are not listed, see --limit\n", rest)
	}
	if c.JSON() {
		return output.PrintJSON(std.Out, c.document(r))
	}
	std.Printf("%s checked: %d matched, %d behind, %d ahead, %d different\n",
		output.Counted(r.Checked, "account"), r.Matched, r.Behind, r.Ahead, r.Different)
	if len(r.Differences) == 0 {
		return nil
	}
	t := output.NewTable(std.Out, "ACCOUNT", output.Left("ACCOUNT", 20), output.Left("KIND", 9),
		output.Right("LEDGER VERSION", 14), output.Right("VERSION", 8).Optional(), output.Right("LEDGER BALANCE", 14), output.Right("BALANCE", 14))
	for i := range r.Differences {
		d := &r.Differences[i]
		t.Row(d.AccountID, d.Kind, d.LedgerVersion, d.Version,
			c.balanceText(d.LedgerVersion, d.LedgerBalance), c.balanceText(d.Version, d.Balance))
	}
	return t.Flush()
}

// The text masked is shown instead of a hidden balance.
const masked = "***"

func (c *VerifyCmd) balanceText(version *int64, balance string) string {
	switch {
	case version == nil:
		return ""
	case c.ShowBalances:
		return balance
	default:
		return masked
	}
}

func (c *VerifyCmd) document(r *ledger.Report) verifyDocument {
	d := verifyDocument{
		Checked: r.Checked, Matched: r.Matched, Behind: r.Behind, Ahead: r.Ahead, Different: r.Different, Differences: []any{},
	}
	for i := range r.Differences {
		x := &r.Differences[i]
		plain := differenceDocument{x.AccountID, x.Kind, x.LedgerVersion, x.Version}
		if c.ShowBalances {
			d.Differences = append(d.Differences, shownDifference{plain, output.NumberOrNull(&x.LedgerBalance), output.NumberOrNull(&x.Balance)})
		} else {
			d.Differences = append(d.Differences, plain)
		}
	}
	return d
}
