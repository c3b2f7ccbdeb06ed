package cli

// openingPages are those of the commands about where a history begins.
var openingPages = map[string]manualPage{
	"open": {
		about: "For a topic that has lost its beginning: an account starts with its balance at some version, taken from a ledger, and events up to " +
			"that version are duplicates. The ledger is a CSV file with the header account_id,version,balance,currency and, if it has them, " +
			"status (open or closed) and last_event_id, or a query that returns these columns. The plan for each account is will_open (it is below that " +
			"version; what waits behind it is applied), kept (it is at that version or beyond), or refused (it has another currency). If a line is wrong, or an account " +
			"appears twice, the whole ledger is refused before anything is written. Consumers keep running. After an interruption, run it " +
			"again. Without --yes it only prints the plan. Audited in dlq_action; account_opening has each account's opening. See docs/repairs.md, \"A topic without its beginning\".",
		status: "1 also when an account was refused; the others are opened. 2 also when the ledger is wrong.",
		examples: []example{
			{"What would be done", "projector open --ledger=ledger.csv --reason='retention has taken 2025, INC-1234'"},
			{"Do it", "projector open --ledger=ledger.csv --reason='retention has taken 2025, INC-1234' --yes"},
			{
				"Straight from the ledger's database",
				"projector open --ledger-url=postgres://auditor@ledger:5432/core --ledger-query='SELECT account_id, version, balance, currency FROM account' --reason=INC-1234 --yes",
			},
		},
	},
}
