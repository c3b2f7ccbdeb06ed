package cli

// statementPage is the page of account statement.
var statementPage = manualPage{
	about: "Reads what `run --projection=account_statement` has written, in the order of the versions. The running balance of an extract " +
		"starts from what came before it. It is shown as unknown, and null in JSON, after a version that has no entry; standard " +
		"error says which, and when the statement is behind the balance, ahead of it, or does not add up to it. Versions passed " +
		"over on purpose (`account skip`) add nothing, as in the balance. Entries written before places were recorded have none. For an account that was " +
		"opened (`open`), the statement starts after the opening, with the opening's balance.",
	status: "1 also when the account has no entry, and no opening.",
	examples: []example{
		{"All of it", "projector account statement acc-00000042"},
		{"What happened in January, by the time of the events", "projector account statement acc-00000042 --since=2026-01-01T00:00:00Z --until=2026-02-01T00:00:00Z"},
		{"The last three events of a balance at version 17, for a script", "projector account statement acc-00000042 --version-from=15 --version-to=17 --output=json"},
	},
}
