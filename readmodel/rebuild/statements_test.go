package rebuild

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/devstack/devtest"
	"projector/readmodel"
	"projector/readmodel/statement"
	"projector/readmodel/turnover"
	"projector/sql"
)

func TestMain(m *testing.M) {
	devtest.Main(m, func(ctx context.Context, url string) error {
		_, err := readmodel.Migrate(ctx, url)
		return err
	})
}

// TestEveryStatementIsPrepared fills the placeholders of each file in sql/queries, for each set of
// tables that has values for them. PostgreSQL must then be able to prepare the statement.
func TestEveryStatementIsPrepared(t *testing.T) {
	ctx := t.Context()
	pool, err := readmodel.OpenPool(ctx, devtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	names := map[string]string{} // file names by the text of the statement
	for _, projection := range []string{readmodel.BalanceName, "loyalty"} {
		maps.Copy(names, sql.Names(projection))
	}
	for _, set := range rebuilds(t, pool) {
		for name, text := range set.values.Texts() {
			if set.sent == nil || set.sent.MatchString(name) {
				names[text] = name
			}
		}
	}
	unfilled := map[string]bool{}
	for _, name := range sql.QueryNames() {
		unfilled[name] = true
	}
	for text, name := range names {
		delete(unfilled, name)
		if err := prepared(ctx, pool, text); err != nil && !onlyCitusHas(name, err) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	for name := range unfilled {
		t.Errorf("%s: no set of tables has values for all of its placeholders", name)
	}
}

// TestAnInsertedRowIsDated shows that the time of a swap is written into updated_at, and into no
// column whose name only begins like it.
func TestAnInsertedRowIsDated(t *testing.T) {
	table := newRowTable(rowSource{
		RebuildTable: readmodel.RebuildTable{Name: "account_balance", Uncompared: []string{"updated_at"}},
		columns: []rowColumn{
			{quoted: "account_id", name: "account_id", typ: "text", key: true},
			{quoted: "updated_at_branch", name: "updated_at_branch"},
			{quoted: "updated_at", name: "updated_at"},
		},
	})
	if got := table.fill["written_s"]; got != "s.account_id, s.updated_at_branch, now()" {
		t.Error(got)
	}
}

// A filling has values for placeholders. The pattern in sent matches the statements that are sent
// with these values. If sent is nil, all statements whose placeholders have values are sent.
type filling struct {
	values sql.Values
	sent   *regexp.Regexp
}

var (
	ofRows    = regexp.MustCompile("^rows_")
	ofMarkers = regexp.MustCompile("^rows_(digest|some|note|forget|count|plan)$")
	ofWaiting = regexp.MustCompile("^rows_written$")
)

// The function rebuilds returns the values for each set of tables that a rebuild uses. It also
// creates the tables.
func rebuilds(t *testing.T, pool *pgxpool.Pool) (sets []filling) {
	t.Helper()
	all := &Shadow{inbox: markerTable("daily_turnover")}
	sets = append(sets, filling{all.inbox.fill, ofMarkers})
	var copied, noted []string
	for _, label := range []string{"", "loyalty"} {
		a, err := newAccountState(t.Context(), pool, label, 100, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		all.accounts = a
		sets = append(sets, filling{values: a.fill.With(sql.Values{"schema": shadowSchema + ".", "among_p": "true", "among_w": "true"})}, filling{values: a.account.fill},
			filling{a.parked.fill, ofWaiting}, filling{a.overflow.fill, ofWaiting})
		c, n, _, err := all.make(t.Context(), pool, slices.Concat(statement.Definition().Rebuilds(), turnover.Definition().Rebuilds()))
		if err != nil {
			t.Fatal(err)
		}
		copied, noted = append(copied, c...), append(noted, n...)
	}
	for _, table := range all.tables {
		sets = append(sets, filling{table.fill.With(sql.Values{"column": "tableoid"}), ofRows})
	}
	slices.Sort(copied)
	slices.Sort(noted)
	b, err := openSchema(t.Context(), pool, slices.Compact(copied), slices.Compact(noted))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return sets
}

func prepared(ctx context.Context, pool *pgxpool.Pool, text string) error {
	return pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		_, err := conn.Conn().PgConn().Prepare(ctx, "", text, nil)
		return err
	})
}

// onlyCitusHas reports whether the error is only about tables and functions of Citus, which this
// server does not have.
func onlyCitusHas(name string, err error) bool {
	var pgErr *pgconn.PgError
	return strings.HasPrefix(name, "citus_") && errors.As(err, &pgErr) && (pgErr.Code == "42P01" || pgErr.Code == "42883")
}
