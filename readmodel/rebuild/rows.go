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

// group has the number of rows in a group and the sums of their hashes. Only groups that differ are
// compared row by row.
type group struct {
	rows   int64
	digest string
}

// groupCount is the number of groups, a power of two. A row's group depends on its key.
const groupCount = 1 << 16

// groups computes the groups of a table.
func (t *rowTable) groups(ctx context.Context, tx pgx.Tx) (map[int64]group, error) {
	groups := map[int64]group{}
	err := t.addGroups(ctx, tx, "rows_digest", groups)
	if err == nil && t.waits {
		err = t.addGroups(ctx, tx, "hold_digest", groups)
	}
	return groups, err
}

func (t *rowTable) addGroups(ctx context.Context, tx pgx.Tx, query string, groups map[int64]group) error {
	rows, _ := tx.Query(ctx, t.fill.Query(query))
	var (
		bucket, n int64
		digest    string
	)
	_, err := pgx.ForEachRow(rows, []any{&bucket, &n, &digest}, func() error {
		g := groups[bucket]
		groups[bucket] = group{rows: g.rows + n, digest: g.digest + query + digest}
		return nil
	})
	return err
}

// bitsOf returns a bit for each group, in the order of get_bit. The bits of the given groups are set.
func bitsOf(groups []int64) []byte {
	bits := make([]byte, groupCount/8)
	for _, g := range groups {
		bits[g/8] |= 1 << (g % 8)
	}
	return bits
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
	return readmodel.Stream(func(fn func(*row) error) error {
		rows, _ := tx.Query(ctx, t.fill.Query("rows_some"), bitsOf(buckets))
		var r row
		_, err := pgx.ForEachRow(rows, []any{&r.id, &r.key, &r.digest, &r.version, &r.hold}, func() error {
			one := r
			if err := one.parseKey(); err != nil {
				return err
			}
			return fn(&one)
		})
		return err
	})
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
