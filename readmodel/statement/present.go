package statement

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"projector/readmodel"
	"projector/readmodel/appended"
	"projector/sql"
)

// findPresent finds the entries that were not inserted, and sets Present to the event ids of the
// stored rows. It is called only if there are such entries.
func findPresent(ctx context.Context, tx *readmodel.Tx, entries []appended.Entry) error {
	found, first := 0, 0
	for piece := range slices.Chunk(entries, readmodel.SliceRows) {
		accounts, versions := make([]string, len(piece)), make([]int64, len(piece))
		for i := range piece {
			accounts[i], versions[i] = piece[i].Key.Text, piece[i].Key.Number
		}
		from := first
		tx.Queue(sql.Query("statement_present"), accounts, versions).Query(func(rows pgx.Rows) error {
			n, err := readPresent(rows, entries, from)
			found += n
			return err
		})
		first += len(piece)
	}
	if err := tx.Send(ctx); err != nil {
		return err
	}
	if found != len(entries) {
		return readmodel.ErrSuppressed
	}
	return nil
}

// readPresent reads the rows with the keys of some of the entries. These entries start at the index
// from. A row that this transaction inserted belongs to the first entry with its key. For all other
// entries, Present is set to the event id of the row. Transaction ids are reused after a
// wraparound, so a row only counts as inserted here if it also has the entry's event id.
func readPresent(rows pgx.Rows, entries []appended.Entry, from int) (n int, err error) {
	var (
		place int64
		id    string
		ours  bool
	)
	_, err = pgx.ForEachRow(rows, []any{&place, &id, &ours}, func() error {
		n++
		i := from + int(place)
		if ours && id == entries[i].Event.ID && (i == 0 || entries[i-1].Key != entries[i].Key) {
			return nil
		}
		entries[i].Present = id
		return nil
	})
	return n, err
}
