package cli

// trailPages are those of what people have done and of what they have asked for.
var trailPages = map[string]manualPage{
	"gaps fetch": {
		about: "Asks the outbox, over a read-only connection, for every version that an account waits for, up to the first later event that has arrived, and " +
			"decides about each as dlq replay does: will_apply, duplicate, waiting, poison, or not_found when the outbox does not " +
			"have it. With --yes it applies those that can be applied, and what waits behind them, while consumers keep running. An event that was not asked for is not applied. " +
			"Only account_balance gets the event; other projections need it in the topic. A running instance does the same by itself when it has --outbox-url. Without --yes it prints the plan and changes nothing. Audited in dlq_action.",
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
			"(ACTOR), as which user of the database, why, and where: projection, consumer group, place in the topic (PLACE) and in the DLQ topic. " +
			"Of a position that was set, RESULT is from where to where. A replay from a file has the SHA-256 of the replayed and of the original value; ALTERED says whether key, value or headers were changed.",
		examples: []example{
			{"All of today", "projector audit --since=24h"},
			{"One account, for an auditor", "projector audit --account=acc-00000042 --output=json"},
			{"What was replayed with a key, value or header that had been changed", "projector audit --action=replay --output=json | jq -c 'select(.altered)'"},
		},
	},
	"audit verify": {
		about: "Computes again the hash of each row, which covers the row and the hash before it. A row that was changed or removed shows at " +
			"the next one. Rows removed at the end leave no trace in the chain: keep the head it prints in another place, and pass " +
			"it to a later run as --expect-head.",
		status: "1 also when a row was changed or removed, or the expected head is not in the chain.",
		examples: []example{
			{"Check the chain, and print its head", "projector audit verify"},
			{"Check that nothing was removed since that head was printed", "projector audit verify --expect-head=3a5e1f0c9d2b4a6788e0c1d2f3a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6"},
		},
	},
	"requests list": {
		about: "While four eyes are on (projector migrate --four-eyes=on), adding --yes to a command only requests the change, and " +
			"another login approves it. Lists what was requested, by whom, and what was decided; requests are never deleted.",
		examples: []example{
			{"What waits for approval", "projector requests --state=open"},
			{"Everything, for a program", "projector requests --output=json"},
		},
	},
	"requests show": {
		about: "Prints the command that was requested, with its times, files and flags as they were, and then what it would do now: " +
			"its plan, as without --yes. Changes nothing.",
		examples: []example{
			{"What would request 17 do?", "projector requests show 17"},
			{"The same for a program", "projector requests show 17 --output=json"},
			{"One of its files in full", "projector requests show 17 --file=poison.jsonl"},
		},
	},
	"approve": {
		about: "Makes the plan of the request again, with the servers given here, compares it with the one that was requested and, if they are the same, carries it out. " +
			"The login that made the request cannot approve it: PostgreSQL compares the logins. The audit trail keeps the requester's actor and " +
			"reason, and records who approved it.",
		status: "1 also when the plan has changed since: the request is then refused and nothing is changed; and when the requested command would end with 1.",
		examples: []example{
			{"For a program: the request, and results on standard error", "projector approve 17 --reason='compared, INC-1234' --output=json"},
			{"After a look at projector requests show 17", "projector approve 17 --reason='compared with the core system, INC-1234'"},
		},
	},
	"reject": {
		about: "The request stays on record as rejected. It cannot be reopened; make a new request instead.",
		examples: []example{
			{"The change is not needed", "projector reject 17 --reason='the producer sends it again'"},
			{"For a program", "projector reject 17 --reason='same as 16' --output=json"},
		},
	},
}
