package ledger

import (
	"context"
	"iter"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/ledger"
)

// load reads the whole ledger into memory. The function check, which may be nil, checks each entry
// first. If the ledger does not fit into memory, the error contains the text remedy, which names an
// alternative to more memory.
func load(
	ctx context.Context, f *flags.LedgerFlags, source *source, layout ledger.Layout, std *output.Streams, check func(*ledger.Entry) error, remedy string,
) (*ledger.Table, error) {
	plan := flags.ShareMemory(f.Resident())
	plan.Apply()
	table := ledger.NewTable(plan.Ledger)
	shown := output.NewProgress(std.Err, "ledger read")
	defer shown.Done()
	for e, err := range source.entries(ctx, layout) {
		if err == nil && check != nil {
			err = source.placed(e.Place, check(&e))
		}
		if err != nil {
			return nil, err
		}
		if !table.Add(&e) {
			return nil, exit.Refusef("the ledger does not fit into --memory-limit=%s (MEMORY_LIMIT): only its first %d accounts do; %s, or allow more memory",
				f.Resident(), table.Len(), remedy)
		}
		shown.Update(table.Len(), 0)
	}
	return table, source.placed(0, table.Sort())
}

// inOrder streams the ledger, sorted by the bytes of the account id. A file is read into memory and
// sorted. The result of a query is sorted by its database.
func inOrder(ctx context.Context, f *flags.LedgerFlags, source *source, layout ledger.Layout, std *output.Streams) (iter.Seq2[ledger.Entry, error], error) {
	if f.LedgerURL == "" {
		table, err := load(ctx, f, source, layout, std, nil, "use --ledger-url, which its database sorts")
		if err != nil {
			return nil, err
		}
		return withoutErrors(table.Entries()), nil
	}
	return func(yield func(ledger.Entry, error) bool) {
		for e, err := range ledger.Ascending(source.entries(ctx, layout)) {
			if !yield(e, source.placed(0, err)) {
				return
			}
		}
	}, nil
}

// withoutErrors converts entries to a sequence whose errors are all nil.
func withoutErrors(entries iter.Seq[ledger.Entry]) iter.Seq2[ledger.Entry, error] {
	return func(yield func(ledger.Entry, error) bool) {
		for e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}
