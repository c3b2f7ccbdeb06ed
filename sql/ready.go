package sql

import (
	"fmt"
	"slices"
	"strings"
)

// need is a table or view that a projection needs.
type need struct {
	relation   string
	privileges string
	columns    string // the columns that the projection uses; if empty, they are not checked
}

// These tables are needed by more than one projection.
var (
	everyProjection = []need{
		{
			"projector_position", "SELECT INSERT UPDATE",
			`consumer_group, topic, partition, next_offset, judged_until, topic_id, owner, fence, updated_at, projection,
			leader_epoch, leader_epoch_at, judged_epoch, judged_epoch_at, stopped_reason, stopped_end, halted_reason, halted_fence, set_by_hand`,
		},
		{"projector_source", "SELECT INSERT", ""},
	}
	inboxes = []need{
		{"inbox", "SELECT INSERT DELETE", "message_id, handler, processed_at"},
		{"inbox_pruned", "SELECT INSERT UPDATE", "handler, until"},
	}
)

// In the tables of custom projections, there is one more column, for the projection's name.
const (
	parkedColumns = `account_id, version, class, event_id, expected_version, topic, partition, "offset", record_timestamp, replays,
		key, value, headers, parked_at`
	overflowColumns = "account_id, lowest_version, highest_version, events, expected_version, since, topic, partition, first_offset, last_offset, first_version"
)

// needs has what each projection needs, by the name of the query that checks it. The tables of a
// custom projection itself are not checked here, because EXPLAIN of its statements checks them.
var needs = map[string][][]need{
	"check_ready": {{
		{"account_balance", "SELECT INSERT UPDATE", "account_id, currency, balance, version, status, last_event_id, last_event_at, updated_at"},
		{"parked_event", "SELECT INSERT UPDATE DELETE", parkedColumns},
		{"park_overflow", "SELECT INSERT UPDATE DELETE", overflowColumns},
		{"account_hold", "SELECT", ""},
	}, everyProjection},
	"custom_ready": {inboxes, {
		{"projection_account", "SELECT INSERT UPDATE", "projection, account_id, version, last_event_id, last_event_at, updated_at"},
		{"projection_parked_event", "SELECT INSERT UPDATE DELETE", "projection, " + parkedColumns},
		{"projection_park_overflow", "SELECT INSERT UPDATE DELETE", "projection, " + overflowColumns},
		{"projection_hold", "SELECT", ""},
		{"projection_file", "SELECT", "projection, sha256, mode, text"},
		{"new_events", "SELECT", `account_id, version, event_id, event_type, occurred_at, correlation_id, data, topic, partition, "offset"`},
	}, everyProjection},
	"statement_ready": {{{
		"account_statement", "SELECT INSERT",
		"account_id, version, event_id, event_type, amount, currency, occurred_at, correlation_id, source_partition, source_offset",
	}}, everyProjection},
	"turnover_ready": {{{"daily_turnover", "SELECT INSERT UPDATE", "day, currency, credited, debited, events"}}, inboxes, everyProjection},
}

// readyQueries returns the values that are filled into ready.sql for each query of needs.
func readyQueries() map[string]Values {
	queries := make(map[string]Values, len(needs))
	for name, lists := range needs {
		var privileges, probes []string
		for _, n := range slices.Concat(lists...) {
			for privilege := range strings.FieldsSeq(n.privileges) {
				privileges = append(privileges, fmt.Sprintf("('%s', '%s')", n.relation, privilege))
			}
			if n.columns != "" {
				probes = append(probes, fmt.Sprintf("UNION ALL\nSELECT NULL WHERE EXISTS (SELECT %s FROM %s WHERE false)", n.columns, n.relation))
			}
		}
		queries[name] = Values{"privileges": strings.Join(privileges, ", "), "probes": strings.Join(probes, "\n")}
	}
	return queries
}
