package ledger

import (
	"encoding/json"

	"projector/internal/cli/output"
	"projector/internal/ledger"
)

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
	std.Printf("%d accounts checked: %d matched, %d behind, %d ahead, %d different\n",
		r.Checked, r.Matched, r.Behind, r.Ahead, r.Different)
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
