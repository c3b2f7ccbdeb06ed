package errclass

// sqlstates decides about single SQLSTATEs that differ from their class.
// Source: PostgreSQL, Appendix A, "PostgreSQL Error Codes".
var sqlstates = map[string]Class{
	"25006": RetryReset, // read_only_sql_transaction: a failover, the old primary is a standby now
	"25P03": Retry,      // idle_in_transaction_session_timeout: this process was frozen
	"25P04": Retry,      // transaction_timeout
	"54000": Isolate,    // program_limit_exceeded: an index row too large, of one event
	"55000": RetryLoud,  // object_not_in_prerequisite_state: the database takes no connections
	"55P02": RetryLoud,  // cant_change_runtime_param: wrong connection options
	"55P04": Bug,        // unsafe_new_enum_value_usage
}

// sqlstateClasses decides by the first two characters. What is missing here is
// Unknown: retried, and somebody is told. Among the missing on purpose: P0*
// (an exception raised by somebody's trigger), 38*, 39*, HV* (foreign code)
// and XX* (corruption).
var sqlstateClasses = map[string]Class{
	"03": Bug,        // SQL statement not yet complete
	"08": Retry,      // connection exception
	"0A": RetryReset, // feature not supported: "cached plan must not change result type" after a migration
	"0B": Bug,        // invalid transaction initiation
	"0L": RetryLoud,  // invalid grantor
	"0P": RetryLoud,  // invalid role specification
	"21": Bug,        // cardinality violation: the same key twice in one upsert
	"22": Isolate,    // data exception
	"23": Isolate,    // integrity constraint violation
	"24": Bug,        // invalid cursor state
	"25": Bug,        // invalid transaction state; 25P02: we went on after a failed statement
	"26": RetryReset, // invalid SQL statement name: a pooler or failover lost our prepared statement
	"28": RetryLoud,  // invalid authorization specification
	"2D": Bug,        // invalid transaction termination
	"34": Bug,        // invalid cursor name
	"3B": Bug,        // savepoint exception
	"3D": RetryLoud,  // invalid catalog name: no such database
	"3F": RetryLoud,  // invalid schema name
	"40": Retry,      // transaction rollback: serialization failure, deadlock
	"42": RetryLoud,  // syntax error or access rule violation: a grant, a migration
	"53": Retry,      // insufficient resources: disk, memory, connections
	"54": Bug,        // program limit exceeded
	"55": Retry,      // object not in prerequisite state: lock not available
	"57": Retry,      // operator intervention: shutdown, cancel, starting up
	"58": Retry,      // system error: I/O
	"72": Retry,      // snapshot too old
	"F0": RetryLoud,  // configuration file error
}

// sqlstateClass decides about one SQLSTATE.
func sqlstateClass(code string) Class {
	if !wellFormed(code) {
		return Unknown
	}
	if c, ok := sqlstates[code]; ok {
		return c
	}
	return sqlstateClasses[code[:2]]
}

// sqlstateReason is the label for one SQLSTATE. A code that does not look like
// one is not repeated: labels are bounded and clean.
func sqlstateReason(code string) string {
	if !wellFormed(code) {
		return "sqlstate"
	}
	return code
}

func wellFormed(code string) bool {
	if len(code) != 5 {
		return false
	}
	for _, r := range code {
		if (r < '0' || r > '9') && (r < 'A' || r > 'Z') {
			return false
		}
	}
	return true
}
