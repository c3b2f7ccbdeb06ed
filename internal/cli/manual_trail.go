package cli

// trailPages are those of what people have done and of what they have asked for.
var trailPages = map[string]manualPage{
	"gaps fetch": {
		about: "Asks the outbox, by a connection that only reads, for every version that an account waits for up to the first later event that is there, and " +
			"decides about each as about a dead letter that is replayed: will_apply, duplicate, waiting, poison, or not_found when the outbox does not " +
			"have it. With --yes it applies those that fit, beside running consumers, and what waits behind them. An event that was not asked for is not applied. " +
			"A running instance does the same by itself when it has --outbox-url. Without --yes it prints the plan and changes nothing. Audited in dlq_action.",
		status: "1 also when a version could not be applied, the outbox cannot be reached, or it refuses the query.",
		examples: []example{
			{"What the outbox has, with the query in OUTBOX_QUERY", "projector gaps fetch --outbox-url=postgres://reader@core:5432/core"},
			{"Apply it", "projector gaps fetch --outbox-url=postgres://reader@core:5432/core --reason='lost on the way, INC-1234' --yes"},
			{
				"One account, and the query here",
				"projector gaps fetch --account=acc-00000042 --outbox-url=postgres://reader@core:5432/core --outbox-query='SELECT o.account_id AS key, o.payload AS value " +
					"FROM outbox o JOIN unnest($1::text[], $2::bigint[]) AS w (account_id, version) USING (account_id, version)'",
			},
		},
	},
	"audit list": {
		about: "The audit trail is the table dlq_action: replays, discards, skips, fetched events, rebuilds and set positions, with who asked for them " +
			"(ACTOR), as which user of the database, and why. A replay of an altered value has the SHA-256 of both values.",
		examples: []example{
			{"All of today", "projector audit --since=24h"},
			{"One account, for an auditor", "projector audit --account=acc-00000042 --output=json"},
			{"What was replayed with another value than it was dead-lettered with", "projector audit --action=replay --output=json | jq -c 'select(.altered)'"},
		},
	},
	"audit verify": {
		about: "Computes the hash of each row again, of the row and the hash before it. A row that was changed or taken out shows at " +
			"the next one. Rows taken out at the end leave no trace in the chain: note the head it prints in another place, and give " +
			"it to a later run.",
		status: "1 also when a row was changed or taken out, or the expected head is not in the chain.",
		examples: []example{
			{"Look, and print the head", "projector audit verify"},
			{"Nothing was removed since the head was noted", "projector audit verify --expect-head=3a5e1f0c9d2b4a6788e0c1d2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6"},
		},
	},
	"requests list": {
		about: "While four eyes are on (projector migrate --four-eyes=on), whoever adds --yes to a command asks for the change, and " +
			"another login approves it. Lists what was asked for, by whom, and what was decided; requests are never deleted.",
		examples: []example{
			{"What waits for somebody to approve it", "projector requests --state=open"},
			{"Everything, for a program", "projector requests --output=json"},
		},
	},
	"requests show": {
		about: "Prints the command that was requested, with its times, files and flags as they were, and then what it would do now: " +
			"its plan, as without --yes. Changes nothing.",
		examples: []example{
			{"What is it that request 17 would do?", "projector requests show 17"},
			{"The request alone, for a program; the plan goes to standard error", "projector requests show 17 --output=json"},
		},
	},
	"approve": {
		about: "Makes the plan of the request again, with the servers given here, compares it with the one that was requested, and does it. " +
			"Whoever made the request cannot approve it: PostgreSQL compares the logins. The audit trail keeps the requester's actor and " +
			"reason, and has who approved it.",
		status: "1 also when the plan has changed since: the request is then refused, and nothing was changed; and as the requested command says.",
		examples: []example{
			{"For a program: the request, and results on standard error", "projector approve 17 --reason='compared, INC-1234' --output=json"},
			{"After a look at projector requests show 17", "projector approve 17 --reason='compared with the core system, INC-1234'"},
		},
	},
	"reject": {
		about: "The request stays on record as rejected. It cannot be opened again: whoever wants it asks again.",
		examples: []example{
			{"Nothing is to be done", "projector reject 17 --reason='the producer sends it again'"},
			{"For a program", "projector reject 17 --reason='twice, see 16' --output=json"},
		},
	},
}
