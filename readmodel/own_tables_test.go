package readmodel_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"projector/readmodel"
	"projector/sql"
)

// Every statement on the tables of balances that the account machine may send has its twin for
// projections of one's own: without one it would read and write balances.
func TestStatementsOnBalancesHaveOnesForOwnProjections(t *testing.T) {
	t.Parallel()
	balancesOnly := regexp.MustCompile(`^(own_.*|shadow_.*|swap_.*|rebuild_.*|statement_.*|verify_.*|check_ready|copy_balance|load_index|index_session|rows_.*)$`)
	tables := regexp.MustCompile(`\b(account_balance|parked_event|park_overflow|account_hold)\b`)
	comments := regexp.MustCompile(`(?m)^--.*$`)
	var missing []string
	for text, name := range sql.Names() {
		if tables.MatchString(comments.ReplaceAllString(text, "")) && !balancesOnly.MatchString(name) && readmodel.OwnStatements[text] == "" {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("no queries/own_NAME.sql for %s", strings.Join(missing, ", "))
	}
	for of, text := range readmodel.OwnStatements {
		if tables.MatchString(comments.ReplaceAllString(text, "")) {
			t.Errorf("the statement for own projections is about balances: %.60s of %.60s", text, of)
		}
	}
}
