package cli

// comparingPages are the pages of the commands that compare the read model with something else.
var comparingPages = map[string]manualPage{
	"verify": {
		about: "Compares each account at equal versions with a ledger: CSV with the header account_id,version,balance, or a query that returns these columns. Accounts that are behind or ahead of the ledger's version are counted separately: " +
			"they are not differences. Balances are masked unless --show-balances asks for them.",
		status: "0 nothing differs; 1 also when an account differs, is missing, or is unknown to the ledger, when nothing could be compared, " +
			"or less than --min-compared.",
		examples: []example{
			{"Against a file with account_id,version,balance", "projector verify --ledger=ledger.csv"},
			{
				"Against the core's own database",
				"projector verify --ledger-url=postgres://auditor@ledger:5432/core --ledger-query='SELECT account_id, version, balance FROM account'",
			},
			{"Each night: at least nine of ten accounts have to be at the ledger's version", "projector verify --ledger=ledger.csv --min-compared=0.9"},
			{"After a loss: the accounts that lack events", "projector verify --ledger=ledger.csv --list-behind --output=json | jq -c '.differences[]'"},
			{"A quick look at a thousand accounts", "projector verify --ledger=ledger.csv --sample=1000 --output=json"},
		},
	},
	"rebuild": {
		about: "Reads the topic from its first record into shadow tables while consumers continue, compares, and with --yes " +
			"replaces the accounts, or rows, that differ. Without --yes it changes nothing. Skips and replays that were done before are done again. " +
			"Consumers wait during the swap, which ends within 30 s or changes nothing.",
		status: "0 also when some differ and --yes was not given, or are left alone; 1 also when the topic has lost its first records " +
			"(see --partial), is not the one the rows came from, or more would change than --max-differences; with --check " +
			"1 when it cannot succeed.",
		examples: []example{
			{"Check quickly whether they can be rebuilt", "projector rebuild --check"},
			{"Do the balances match the events?", "projector rebuild"},
			{"Replace the balances that differ", "projector rebuild --yes"},
			{"All of them, and remove accounts that have no event in the topic", "projector rebuild --yes --max-differences=5000 --remove"},
			{"The turnover by day and currency", "projector rebuild --projection=daily_turnover --yes"},
			{"After retention has removed the first records", "projector rebuild --partial --output=json"},
		},
	},
}
