package cli

import (
	"maps"
	"strings"

	"github.com/alecthomas/kong"
)

// manualPage is what --help and docs/cli.md say of a command, in addition to its one line of
// help and its flags.
type manualPage struct {
	about    string // sentences
	status   string // what its exit statuses mean beyond those of every command
	examples []example
}

// example is a command line, and what it is for.
type example struct{ purpose, line string }

// addManual gives each command its page.
func addManual(k *kong.Kong) error {
	for _, node := range k.Model.Leaves(false) {
		node.Detail = manual[node.Path()].detail()
	}
	return nil
}

// detail is the page in the form of a Go doc comment, which kong wants.
func (p manualPage) detail() string {
	var text strings.Builder
	text.WriteString(p.about)
	if p.status != "" {
		text.WriteString("\n\nExit status: " + p.status)
	}
	text.WriteString("\n\nExamples:\n")
	for _, e := range p.examples {
		text.WriteString("\n\t# " + e.purpose + "\n\t" + e.line + "\n")
	}
	return text.String()
}

// manual has the pages by the path of the command.
var manual = joinPages(commandPages, comparingPages, databasePages, trailPages, openingPages, ownPages)

func joinPages(all ...map[string]manualPage) map[string]manualPage {
	joined := map[string]manualPage{}
	for _, pages := range all {
		maps.Copy(joined, pages)
	}
	return joined
}

var commandPages = map[string]manualPage{
	"run": {
		about: "Reads the topic as a member of a consumer group and writes one projection. Start two instances, or more, " +
			"up to the number of partitions: they share them. While a database or broker cannot be reached, it retries indefinitely, also at " +
			"startup; /readyz on --listen says what is wrong. A first SIGTERM or Ctrl-C finishes and commits the work in progress, a second one exits at once.",
		status: "0 stopped by a signal; 1 the schema is missing or older than the program (run migrate), a port is taken, or the projection file " +
			"is not the one its rows were made with (rebuild, or --accept-changed-file), or the rows came from another topic (--another-topic).",
		examples: []example{
			{
				"Balances, from your own servers",
				"projector run --brokers=kafka-1:9092,kafka-2:9092 --database-url=postgres://projector@db:5432/bank",
			},
			{"Statements too, in a consumer group of their own", "projector run --projection=account_statement --listen=:8081"},
			{
				"With TLS, a user, and passwords in files that may change",
				"projector run --tls --sasl-mechanism=SCRAM-SHA-512 --sasl-username=projector --sasl-password-file=/run/secrets/kafka --database-password-file=/run/secrets/database",
			},
			{"Straight from Debezium's outbox router", "projector run --topic=account.events --format=debezium-outbox"},
			{"Answering readers who wait for a version (docs/read-model.md)", "projector run --read-listen=:8082 --read-token-file=/run/secrets/readers --read-balances"},
			{
				"Fetching lost events from the producer's outbox, with the query in OUTBOX_QUERY",
				"projector run --outbox-url=postgres://reader@core:5432/core --outbox-password-file=/run/secrets/outbox --outbox-after=5m",
			},
			{"Avro, with a schema registry", "projector run --format=avro --schema-registry-url=https://registry:8081"},
			{"With traces of single records sent to a collector", "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318 projector run --tracing=otlp"},
		},
	},
	"demo": {
		about: "Starts a broker in this process and a PostgreSQL of its own, unless --brokers or --database-url names yours; produces " +
			"a stream that has every kind of faulty delivery in it, projects it, and compares balances and dead letters with its own ledger.",
		status: "0 everything matches the ledger; 1 something differs, or the demo was interrupted before the check.",
		examples: []example{
			{"The whole system, with nothing to set up", "projector demo"},
			{"Keep it running afterwards, to look at its page", "projector demo --stay --listen=127.0.0.1:8080"},
			{"A small stream, different from the usual one", "projector demo --accounts=50 --events=2000 --partitions=3 --seed=7"},
		},
	},
	"dlq summary": {
		about: "Reads the DLQ topic as dlq list does and counts: a row for each class and status, the largest first. FIRST and LAST are how " +
			"long ago the first and the last of them failed; EXAMPLE is the place of the first, for dlq show. ACCOUNTS counts different " +
			"accounts, as far as they can be read. A DLQ topic that does not exist counts as empty.",
		status: "1 also when a partition of the DLQ topic cannot be read; the dead letters of the others are counted.",
		examples: []example{
			{"Which kinds of dead letters there are", "projector dlq summary"},
			{"What has come since the deploy and is not resolved", "projector dlq summary --since=1h --status=open,ready,waiting"},
			{"An example of each class, for a program", "projector dlq summary --output=json | jq -r '[.class, .example] | @tsv'"},
		},
	},
	"inspect": {
		about: "Use it to find out why nothing arrives: it reads records as run would with the same flags and says what each of them is: an event, " +
			"a tombstone, ignored, or the class of the dead letter it would become, and why. It needs only Kafka and, for formats that use one, " +
			"the schema registry; it joins no group and writes nothing. The order of versions is not checked. Without --partition the " +
			"records come from all partitions in equal parts, because each producer may write to its own. With --mapping each field is shown " +
			"with where it was read from (amounts only with --show-payload), and all that is wrong with a record. --suggest prints a " +
			"mapping file to begin with; nothing uses it, and what a person has to decide is marked.",
		status: "0 whatever the records are, also when there are none, which stderr reports; 1 also when the topic, the partition or the offset does " +
			"not exist, or a partition cannot be read.",
		examples: []example{
			{"The first ten", "projector inspect"},
			{"As another format", "projector inspect --topic=account.events --format=debezium-outbox"},
			{"One record, with its payload", "projector inspect --partition=3 --offset=1042 --limit=1 --show-payload"},
			{"How a mapping reads a thousand records, by class", "projector inspect --limit=1000 --mapping=names.yaml | tail"},
			{"A mapping to begin with", "projector inspect --suggest > bank.yaml"},
		},
	},
	"dlq list": {
		about: "Reads the DLQ topic from its beginning and compares each dead letter with the read model: open (somebody has to act), ready " +
			"(would apply now), waiting (for a gap), resolved (passed), discarded. A DLQ topic that does not exist counts as empty.",
		status: "1 also when a partition of the DLQ topic cannot be read; the dead letters of the others are listed.",
		examples: []example{
			{"What somebody has to look at", "projector dlq list --status=open --since=24h"},
			{"All of one account", "projector dlq list --account=acc-00000042"},
			{"One class, for a program", "projector dlq list --class=invalid_amount --output=json"},
		},
	},
	"dlq show": {
		about: "Names the dead letter by its partition and offset in the DLQ topic, as list prints them. Amounts and payload are masked " +
			"unless they are asked for.",
		status: "1 also when there is no such record, or it is not a dead letter.",
		examples: []example{
			{"The dead letter at offset 1042 of partition 3", "projector dlq show 3/1042"},
			{"With its payload, for a program", "projector dlq show 3/1042 --show-payload --output=json"},
		},
	},
	"dlq export": {
		about:  "Writes whole records, payload included: treat the file as you treat the topic. An existing file is not overwritten.",
		status: "1 also when a partition of the DLQ topic cannot be read; the dead letters of the others are exported.",
		examples: []example{
			{"What is open, to correct it", "projector dlq export --status=open --file=dead-letters.jsonl"},
			{"To standard output", "projector dlq export --class=malformed_payload --since=7d > dead-letters.jsonl"},
		},
	},
	"dlq replay": {
		about: "Decides about each dead letter as if it had just arrived and, with --yes, applies those that can be applied, in the order of account " +
			"and version, while consumers keep running. Without --yes it prints the plan and changes nothing. Without a filter, dead letters that are resolved are left out. Each repair is audited in dlq_action.",
		status: "1 also when one of them could not be applied, or when a partition of the DLQ topic cannot be read: nothing is changed then, unless --dlq-partition names others.",
		examples: []example{
			{"What would happen to an account's dead letters", "projector dlq replay --account=acc-00000042"},
			{"Do it", "projector dlq replay --account=acc-00000042 --yes"},
			{"From a file that was exported and corrected", "projector dlq replay --from-file=dead-letters.jsonl --reason=INC-1234 --yes"},
			{
				"Publish them to Kafka again, slowly, once a mapping works around a bug in the producer",
				"projector dlq replay --class=malformed_payload --to-topic=account-events --rate=100 --yes",
			},
		},
	},
	"dlq discard": {
		about: "Discarded dead letters are no longer listed as open, and are replayed only on request. If the event of one is parked, " +
			"it is removed in the same transaction: it is not applied when its turn comes, and a rebuild omits it. The record of that topic, " +
			"partition and offset stays discarded when it is read again; a new record with the same version is a new event. " +
			"A dead letter whose version the read model has passed is not discarded. They stay in the " +
			"topic; who discarded them and why stays in dlq_action. Without --yes it only lists them.",
		status: "1 also when a partition of the DLQ topic cannot be read: nothing is changed then, unless --dlq-partition names others.",
		examples: []example{
			{"What would be discarded", "projector dlq discard --class=unknown_event_type --until=30d --reason='test events of March'"},
			{"One dead letter, for good", "projector dlq discard --dlq-partition=3 --dlq-offset=1042 --reason='see INC-1234' --yes"},
		},
	},
	"account show": {
		about:  "Shows balance, version and, while the account waits, the version it waits for, why, and what waits behind it.",
		status: "1 also when no event of the account has been applied or parked.",
		examples: []example{
			{"For people", "projector account show acc-00000042"},
			{"Its missing version, for a script", "projector account show acc-00000042 --output=json | jq .waiting_for_version"},
		},
	},
	"account statement": statementPage,
	"account skip": {
		about: "For an event that can never be applied: the version counts as passed without changing the balance, and what waits " +
			"behind it is applied. The balance then lacks that event: correct it in the ledger. Without --yes it only shows the account, " +
			"what is known of the event (class, id, record), how many waiting events would be applied, and the balance then. An account that " +
			"waits for nothing is refused, unless --nothing-waits says that its next event is lost. An event that comes later for a skipped " +
			"version is a duplicate; it is counted in projector_skipped_events_total and logged with its place. Audited in dlq_action.",
		status: "1 also when the account does not wait for this version; nothing is changed then.",
		examples: []example{
			{"What would be done", "projector account skip acc-00000042 --version=18 --reason='lost by the producer, INC-1234'"},
			{"Do it", "projector account skip acc-00000042 --version=18 --reason='lost by the producer, INC-1234' --yes"},
		},
	},
	"account unskip": {
		about: "The account is again at the version before the one that was skipped last, and waits for it, if its event is known or later ones are. " +
			"Only while nothing was applied after it. An event of that version that came in between was a duplicate: have it read again " +
			"with position set, or sent again. Without --yes it only says what it would do. Audited in dlq_action.",
		status: "1 also when another version was skipped last, or something was applied after it; nothing is changed then.",
		examples: []example{
			{"What would be done", "projector account unskip acc-00000042 --version=18 --reason='it was found, INC-1234'"},
			{"Do it", "projector account unskip acc-00000042 --version=18 --reason='it was found, INC-1234' --yes"},
		},
	},
	"gaps list": {
		about: "One row per account, the oldest gap first: the version it waits for, the class of the dead letter that caused the gap, and how many events wait.",
		examples: []example{
			{"Who waits for what", "projector gaps"},
			{"Gaps older than an hour", "projector gaps --output=json | jq -c 'select(.age_seconds > 3600)'"},
		},
	},
	"position list": {
		about: "Needs Kafka and the database only, no running process. Where a partition has no position, none of it has been read. " +
			"MARGIN is how many offsets behind the position the log begins, LASTS how long it takes until retention removes the " +
			"first unread record: a dash when there is none, or when retention has no time limit. A partition is stopped when its owner " +
			"has given it up, until position set or what its reason names; paused or breaker_open until resume. The reasons, " +
			"and who owns which partitions, are printed below the table.",
		status: "1 also when a partition of the topic cannot be asked for; the others are shown.",
		examples: []example{
			{"Where everything stands", "projector position"},
			{"What does not continue, for a program", "projector position --output=json | jq -c 'select(.state != \"running\")'"},
			{"Of another projection", "projector position --projection=daily_turnover"},
		},
	},
	"position set": {
		about: "For a partition that cannot continue until a person decides where: running consumers continue there within 10 s, others when they start. " +
			"What was processed before is skipped, whenever it is read again. Without --yes it only says what it would do. Audited in dlq_action.",
		status: "1 also when it is refused: the group has no positions, the offset is outside the log, records would be passed over unread, the topic is another " +
			"one, or the inbox of a projection of sums no longer knows what of it was counted. In that case nothing is changed in any partition.",
		examples: []example{
			{"What would be done", "projector position set --partition=3 --start --reason='removed by retention, INC-1234'"},
			{"Do it", "projector position set --partition=3 --start --reason='removed by retention, INC-1234' --yes"},
			{"Only if it has not moved since it was looked at", "projector position set --partition=3 --offset=120 --expect=180 --reason=INC-1234 --yes"},
			{"Everything since yesterday once more", "projector position set --all --time=24h --reason='look again' --yes"},
		},
	},
	"position remove": {
		about: "For a consumer group that was renamed or removed, also one that Kafka no longer knows, or a topic it no longer reads; otherwise its positions stay in the " +
			"database. Balances and rows are not touched. A group that is started again begins at the first record, and skips what was applied. " +
			"Needs the role that migrates. Without --yes it only says what it would do. Audited in dlq_action.",
		status: "1 also when it is refused: the group has members, has no positions in the topic, or is the only one of a projection " +
			"of sums, whose events would be counted again. Nothing is changed then.",
		examples: []example{
			{"What would be removed", "projector position remove --group=account-balance-old --reason='group renamed, CHG-77'"},
			{"Do it", "projector position remove --group=account-balance-old --reason='group renamed, CHG-77' --yes"},
			{"Of a topic that was moved away from", "projector position remove --group=account-balance-projector --topic=old-events --reason=CHG-78 --yes"},
		},
	},
	"pause": {
		about: "Kept in the database: running consumers obey within 5 s, and so does every later owner of the partition, until resume. " +
			"A paused partition does not make an instance unready. Without --yes it only says what it would do. Audited in dlq_action.",
		status: "1 also when the topic does not have the partition, or the group has no positions (--new-group accepts it).",
		examples: []example{
			{"While a table is altered", "projector pause --all --reason='new column, INC-1234' --yes"},
			{"One partition", "projector pause --partition=3 --reason=INC-1234 --yes"},
		},
	},
	"resume": {
		about: "Ends a pause, and resets the breaker of a partition that a storm of dead letters has stopped; its counts are " +
			"cleared. Running consumers continue within 5 s. The plan says why a partition does not continue. Without --yes it only says what it would do. Audited in dlq_action.",
		status: "1 also when the topic does not have the partition, or the group has no positions (--new-group accepts it).",
		examples: []example{
			{"After a breaker opened and the cause is fixed", "projector resume --partition=3 --reason='format corrected, INC-1234' --yes"},
			{"Accept all dead letters before an offset", "projector resume --partition=3 --through=120000 --reason=INC-1234 --yes"},
			{"Accept all that is in the topic now", "projector resume --all --through=END --reason=INC-1234 --yes"},
			{"After a pause", "projector resume --all --reason='column is there, INC-1234' --yes"},
		},
	},
	"lag": {
		about: "Compares the stored positions with the ends of the partitions; it needs Kafka and the database only, no running " +
			"instance. RECORDS is what is not projected yet, BEHIND the age of the oldest of it; a question mark means that Kafka could not be asked.",
		status: "1 also when a partition has no leader; the others are shown. --watch shows them and continues.",
		examples: []example{
			{"Once", "projector lag"},
			{"Watch it shrink", "projector lag --watch --interval=5s"},
			{"Wait until nothing is left", "projector lag --watch --until-zero"},
			{"Of another projection, for a program", "projector lag --projection=daily_turnover --output=json"},
		},
	},
	"completion": {
		about: "The script asks the program at each press of Tab, so it stays right when the program is replaced.",
		examples: []example{
			{"bash, in this shell only", "source <(projector completion bash)"},
			{"bash, for good (with the package bash-completion)", "projector completion bash > ~/.local/share/bash-completion/completions/projector"},
			{"zsh, for good; the folder has to be in fpath before compinit", "projector completion zsh > ~/.zfunc/_projector"},
			{"fish, for good", "projector completion fish > ~/.config/fish/completions/projector.fish"},
		},
	},
	"version": {
		about: "The version, the commit it was built from, and the Go it was built with. The metric projector_build_info has the same.",
		examples: []example{
			{"For people", "projector version"},
			{"The version alone", "projector version --output=json | jq -r .version"},
		},
	},
}
