package cli

// databasePages are those of the commands that look after the database.
var databasePages = map[string]manualPage{
	"inbox prune": {
		about: "The projection daily_turnover marks each event it has taken in; a marker older than the longest time after which an " +
			"event may be delivered again is of no use. Deletes in small transactions, beside running consumers.",
		examples: []example{
			{"With the retention of the environment", "projector inbox prune"},
			{"Keep three days", "projector inbox prune --retention=72h --output=json"},
		},
	},
	"migrate up": {
		about: "Applies the migrations that are missing, one at a time and under a lock, and repeats the grants. Run it as the role " +
			"that owns the schema, before a new version of run. --four-eyes=on also takes from the operators' role what it could write with, " +
			"and changes nothing when somebody of that role could write all the same.",
		examples: []example{
			{"The database of DATABASE_URL", "projector migrate"},
			{"From now on two people for every repair; off ends it", "projector migrate --four-eyes=on"},
			{"As the owner, its password in a file", "projector migrate --database-url=postgres://owner@db:5432/bank --database-password-file=/run/secrets/owner"},
		},
	},
	"migrate status": {
		about: "Lists each migration of this program and when it was applied, and those that a newer program has applied. " +
			"It changes nothing. The role needs to read projector_schema_version only.",
		examples: []example{
			{"What migrate would do", "projector migrate status"},
			{"Is anything missing? For a program", "projector migrate status --output=json | jq -c 'select(.applied_at == null)'"},
		},
	},
}
