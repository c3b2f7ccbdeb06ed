package readmodel_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"projector/readmodel"
	"projector/readmodel/appended"
	"projector/readmodel/balance"
	"projector/readmodel/inbox"
	"projector/readmodel/readmodeltest"
)

// Definition returns the projection account_activity: the number of events of each account.
func Definition() readmodel.Definition {
	d := inbox.Define("account_activity", ready, add)
	d.RebuildTables = []readmodel.RebuildTable{{Name: "account_activity", Adds: true}}
	return d
}

const ready = `SELECT p || ' on account_activity' FROM unnest('{SELECT,INSERT,UPDATE}'::text[]) AS p
	WHERE NOT has_table_privilege('account_activity', p)`

// add adds the number of each account's events. All writers use the same order of accounts, so that
// they cannot deadlock.
func add(ctx context.Context, tx *readmodel.Tx, entries []appended.Entry) error {
	counts := map[string]int64{}
	for i := range entries {
		if entries[i].Present == "" { // not counted before
			counts[entries[i].Event.AccountID]++
		}
	}
	accounts := slices.Sorted(maps.Keys(counts))
	events := make([]int64, len(accounts))
	for i, id := range accounts {
		events[i] = counts[id]
	}
	tx.Queue(`INSERT INTO account_activity AS a (account_id, events)
		SELECT * FROM unnest($1::text[], $2::int8[])
		ON CONFLICT (account_id) DO UPDATE SET events = a.events + EXCLUDED.events`, accounts, events)
	return tx.Send(ctx)
}

func ExampleDefinition() {
	definitions := []readmodel.Definition{
		balance.Definition{},
		Definition(), // the new line
	}
	for _, d := range definitions {
		fmt.Println(d.Name())
	}
	// Output:
	// account_balance
	// account_activity
}

const activityTable = `CREATE TABLE account_activity (
    account_id text   PRIMARY KEY,
    events     bigint NOT NULL
);`

func TestTheWorkedExample(t *testing.T) {
	pool := openPool(t)
	if err := Definition().Ready(t.Context(), pool); err == nil {
		t.Error("ready without its table")
	}
	if _, err := pool.Exec(t.Context(), activityTable); err != nil {
		t.Fatal(err)
	}
	if err := Definition().Ready(t.Context(), pool); err != nil {
		t.Error(err)
	}
	f := readmodeltest.FeederOf(t, pool, Definition(), partition)
	values := []string{
		eventAs("1", "AccountOpened", "a", 1, noon, `{"currency":"EUR"}`),
		eventAs("2", "FundsCredited", "a", 2, noon, eur("1")), eventAs("2", "FundsCredited", "a", 2, noon, eur("1")),
		eventAs("3", "FundsCredited", "b", 1, noon, eur("1")), eventAs("4", "FundsCredited", "b", 2, noon, eur("x")),
	}
	f.Feed(values...)
	f.MustClaim(0)
	f.Feed(values...)
	const table = "SELECT account_id || ' ' || events FROM account_activity ORDER BY 1"
	same(t, "table", lines(t, pool, table), "a 2\nb 1")
	if _, err := pool.Exec(t.Context(), "UPDATE account_activity SET events = 9 WHERE account_id = 'a'"); err != nil {
		t.Fatal(err)
	}
	s := readmodeltest.OpenRowShadow(t, pool, Definition(), values)
	if report := s.MustCompare(); report.Different() != 1 {
		t.Errorf("%+v", report)
	}
	s.MustSwap()
	same(t, "table, rebuilt", lines(t, pool, table), "a 2\nb 1")
	same(t, "outcomes", f.Outcomes(), "3 5 0 2")
}

// TestTheGuideShowsCodeThatRuns checks that the code in docs/adding-a-projection.md is exactly the
// code in this file.
func TestTheGuideShowsCodeThatRuns(t *testing.T) {
	guide, err := os.ReadFile("../docs/adding-a-projection.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```(?:go|sql)\n(.*?)```").FindAllStringSubmatch(string(guide), -1)
	if len(blocks) < 2 {
		t.Fatalf("%d blocks of code in the guide", len(blocks))
	}
	for _, block := range blocks {
		if !strings.Contains(string(code), strings.TrimSpace(block[1])) {
			t.Errorf("the guide shows what is not in example_test.go:\n%s", block[1])
		}
	}
}
