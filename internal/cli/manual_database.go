package cli

// databasePages are those of the commands that look after the database.
var databasePages = map[string]manualPage{
	"inbox prune": {
		about: "The projection daily_turnover marks each event it has counted; a marker is no longer needed once its event cannot be " +
			"delivered again. Deletes in small transactions, while consumers run. " +
			"Deletes nothing while records are read again because a position was set back: they need the markers. It says which. " +
			"It needs no --yes, so that a timer can run it; the audit trail has each pruning that deletes something. While four eyes are on " +
			"it records a request, as every command does, and the running consumers prune without it.",
		examples: []example{
			{"With the retention of the environment", "projector inbox prune"},
			{"Keep three days", "projector inbox prune --retention=72h --output=json"},
		},
	},
	"migrate up": {
		about: "Applies the migrations that are missing, one at a time and under a lock, and repeats the grants. Run it as the role " +
			"that owns the schema, before a new version of run. --four-eyes=on also revokes the write privileges of the operators' role, " +
			"and changes nothing when a member of that role could still write. --citus distributes the tables of accounts (docs/postgres.md).",
		examples: []example{
			{"The database of DATABASE_URL", "projector migrate"},
			{"Require two people for every repair from now on; off ends it", "projector migrate --four-eyes=on"},
			{"Have Citus distribute the tables of accounts", "projector migrate --citus"},
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
