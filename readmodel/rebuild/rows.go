package rebuild

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/jackc/pgx/v5"

	"projector/readmodel"
	"projector/readmodel/appended"
)

// group has the number of rows in a group and the sum of their hashes. Only groups that differ are
// compared row by row.
type group struct {
	rows   int64
	digest string
}

// groups computes the groups of a table. A row's group depends on its key.
func (t *rowTable) groups(ctx context.Context, tx pgx.Tx) (map[int64]group, error) {
	rows, _ := tx.Query(ctx, t.statement("rows_digest"))
	groups := map[int64]group{}
	var (
		bucket int64
		g      group
	)
	_, err := pgx.ForEachRow(rows, []any{&bucket, &g.rows, &g.digest}, func() error { groups[bucket] = g; return nil })
	return groups, err
}

type row struct {
	id      string       // its key as text; rows are sorted by it
	key     string       // its key as a JSON object
	of      appended.Key // the account and the version in the key; zero if it has none
	digest  int64
	version *int64 // version, if the row is an account
	hold    string // what waits, if the row is an account
}

// differ reports whether two rows with the same id differ. One of them may be nil.
func differ(a, b *row) bool {
	return a == nil || b == nil || a.digest != b.digest || a.hold != b.hold
}

// parseKey reads the account and the version in the key. The columns of the account and the version
// may have any type.
func (r *row) parseKey() error {
	var columns struct {
		Account any `json:"account_id"`
		Version any `json:"version"`
	}
	key := json.NewDecoder(strings.NewReader(r.key))
	key.UseNumber()
	if err := key.Decode(&columns); err != nil {
		return fmt.Errorf("read a key: %w", err)
	}
	r.of = appended.Key{}
	if columns.Account != nil {
		r.of.Text = fmt.Sprint(columns.Account)
	}
	if number, is := columns.Version.(json.Number); is {
		r.of.Number, _ = number.Int64() // it is 0 if the version is no integer
	}
	return nil
}

// rows returns the rows of some groups, sorted by id.
func (t *rowTable) rows(ctx context.Context, tx pgx.Tx, buckets []int64) iter.Seq2[*row, error] {
	return func(yield func(*row, error) bool) {
		rows, err := tx.Query(ctx, t.statement("rows_some"), buckets)
		if err != nil {
			yield(nil, err)
			return
		}
		var r row
		stopped := false
		_, err = pgx.ForEachRow(rows, []any{&r.id, &r.key, &r.digest, &r.version, &r.hold}, func() error {
			one := r
			if err := one.parseKey(); err != nil {
				return err
			}
			if stopped = !yield(&one, nil); stopped {
				return readmodel.ErrStopped
			}
			return nil
		})
		if err != nil && !stopped {
			yield(nil, err)
		}
	}
}

// merged calls add for each id in two streams that are sorted by id. If only one stream has the id,
// the argument for the other stream is nil.
func merged(as, bs iter.Seq2[*row, error], add func(a, b *row) error) error {
	nextA, stopA := iter.Pull2(as)
	defer stopA()
	nextB, stopB := iter.Pull2(bs)
	defer stopB()
	a, err, _ := nextA()
	if err != nil {
		return err
	}
	b, err, _ := nextB()
	for err == nil && (a != nil || b != nil) {
		x, y := a, b
		if x != nil && y != nil && x.id < y.id {
			y = nil
		} else if x != nil && y != nil && y.id < x.id {
			x = nil
		}
		if err = add(x, y); err == nil && x != nil {
			a, err, _ = nextA()
		}
		if err == nil && y != nil {
			b, err, _ = nextB()
		}
	}
	return err
}
