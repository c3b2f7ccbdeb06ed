package sql_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"projector/sql"
)

var comments = regexp.MustCompile(`(?m)--.*$`)

// balancesOnly lists the queries on the balance tables that are not sent for custom projections.
var balancesOnly = []string{
	"check_ready", "current_accounts", "load_index", "missing_versions",
	"rebuild_balances", "rebuild_fetched", "rebuild_opened", "shadow_openings", "verify_accounts",
}

// TestCustomProjectionsSendNothingAboutBalances shows that the statements for a custom projection
// name no balance table, except the queries in balancesOnly.
func TestCustomProjectionsSendNothingAboutBalances(t *testing.T) {
	tables := regexp.MustCompile(`\b(account_balance|parked_event|park_overflow|account_hold)\b`)
	for text, name := range sql.Names("loyalty") {
		if found := tables.FindString(comments.ReplaceAllString(text, "")); found != "" && !slices.Contains(balancesOnly, name) {
			t.Errorf("%s, for a custom projection, has %s and no placeholder: is it for balances only?", name, found)
		}
	}
}

// TestStatementsOnCustomAccountsNameTheProjection shows that the statements on the tables that
// custom projections share name their projection.
func TestStatementsOnCustomAccountsNameTheProjection(t *testing.T) {
	tables := regexp.MustCompile(`\bprojection_(account|parked_event|park_overflow|hold)\b`)
	// These queries read or lock the rows of all projections, or of the projection in the parameter
	// $1. Each row of copy_balance has the name.
	others := []string{"copy_balance", "custom_ready", "state_lock", "projection_file_keep", "projection_file_kept"}
	n := 0
	for text, name := range sql.Names("it's") {
		bare := comments.ReplaceAllString(text, "")
		uses := len(tables.FindAllString(bare, -1))
		if uses == 0 || slices.Contains(others, name) {
			continue
		}
		n++
		if named := strings.Count(bare, "'it''s'"); named < uses {
			t.Errorf("%s has %d tables and the projection %d times:\n%s", name, uses, named, bare)
		}
	}
	if n == 0 {
		t.Error("there are no such statements")
	}
}

// TestAShardIsNamed shows that the statements for a shard contain a list of accounts. Citus sends a
// statement to one shard only if such a list determines the shard.
func TestAShardIsNamed(t *testing.T) {
	balances := sql.AccountsOf("account_balance")
	for _, name := range []string{"load_holds", "update_balance"} {
		one, shard := comments.ReplaceAllString(balances.Query(name), ""), comments.ReplaceAllString(balances.QueryShard(name), "")
		if strings.Contains(shard, "CASE WHEN EXISTS") || !regexp.MustCompile(`account_id = ANY \(\s*\$1`).MatchString(shard) || one == shard {
			t.Errorf("%s of a shard:\n%s", name, shard)
		}
	}
}
