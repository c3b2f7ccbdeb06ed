package readmodel_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"projector/readmodel"
	"projector/sql"
)

// machineFiles say the statements of the account machine.
var machineFiles = []string{
	"account_store.go", "account_view.go", "balance.go", "parked_store.go", "repair.go", "repair_replay.go", "repair_skip.go", "write.go",
}

// balancesOnly are those of their statements that are never sent for another projection.
var balancesOnly = []string{"check_ready", "copy_balance", "shard_load_holds", "shard_update_balance"}

// Every statement on the tables of balances that the account machine may send has its twin for
// projections of one's own: without one it would read and write balances.
func TestStatementsOnBalancesHaveOnesForOwnProjections(t *testing.T) {
	t.Parallel()
	tables := regexp.MustCompile(`\b(account_balance|parked_event|park_overflow|account_hold)\b`)
	comments := regexp.MustCompile(`(?m)--.*$`)
	names := regexp.MustCompile(`"([a-z_]+)"`)
	texts := map[string]string{}
	for text, name := range sql.Names() {
		texts[name] = text
	}
	for _, name := range machineFiles {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range names.FindAllStringSubmatch(string(source), -1) {
			text := texts[found[1]]
			if tables.MatchString(comments.ReplaceAllString(text, "")) && readmodel.OwnStatements[text] == "" && !slices.Contains(balancesOnly, found[1]) {
				t.Errorf("%s: there is no queries/own_%s.sql", name, found[1])
			}
		}
	}
	for of, text := range readmodel.OwnStatements {
		if tables.MatchString(comments.ReplaceAllString(text, "")) {
			t.Errorf("the statement for own projections is about balances: %s", strings.SplitN(of, "\n", 2)[0])
		}
	}
}
