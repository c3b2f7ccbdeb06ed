package cli

import "strings"

// hint is a command line worth typing, and why.
type hint struct{ why, command string }

// next is what to type after the demo. What is not up any more is not suggested.
func (d *demo) next() []hint {
	if !d.cmd.Stay {
		hints := []hint{
			{"the same, kept up to look around in", "projector demo --stay"},
			{"the same on your servers", "projector demo --brokers HOST:PORT --database-url postgres://USER@HOST/EMPTY_DATABASE"},
			{"your own events", "projector migrate && projector run --help"},
		}
		if !d.ownDatabase {
			hints = append([]hint{d.lookAtStale()}, hints...)
		}
		return hints
	}
	http := "http://" + d.process.server.Addr()
	return []hint{
		{"the status page, for a browser", http + "/"},
		{"is it ready?", "curl -i " + http + "/readyz"},
		{"what it counts", "curl -s " + http + "/metrics | grep ^projector_"},
		d.lookAtStale(),
		{"the holes they wait at", "projector gaps --database-url " + d.databaseArgument()},
		{"the dead letters, and how they stand now", "projector dlq list " + d.connection()},
		{"what a replay of them would do", "projector dlq replay --class version_gap --limit 20 " + d.connection()},
		{"a second instance, which takes over half of the partitions", d.secondInstance()},
		{"to end all this", "Ctrl-C"},
	}
}

func (d *demo) lookAtStale() hint {
	why := "the accounts that wait"
	if !d.ownDatabase {
		why += " (with your --database-url as DATABASE_URL)"
	}
	return hint{why, `psql ` + d.databaseArgument() +
		` -c "SELECT * FROM account_balance_current WHERE stale AND account_id LIKE '` + d.accountPrefix + `%'"`}
}

// leftovers is what the demo leaves on servers that are not its own.
func (d *demo) leftovers() []string {
	var left []string
	if !d.ownKafka {
		left = append(left, "topics "+d.run.Topic+" and "+d.run.dlqTopic()+", consumer group "+d.run.group())
	}
	if !d.ownDatabase {
		left = append(left, "the schema, with accounts "+d.accountPrefix+"* and the positions of consumer group "+d.run.group())
	}
	return left
}

func (d *demo) secondInstance() string {
	return "projector run --listen :0 --group " + d.run.group() + " " + d.connection()
}

// connection are the flags that lead to the demo's servers and topic.
func (d *demo) connection() string {
	return "--brokers " + strings.Join(d.run.Brokers, ",") + " --topic " + d.run.Topic +
		" --database-url " + d.databaseArgument()
}

// databaseArgument addresses the database. The password in it is that of the
// demo's own throwaway server; an URL that was given is not repeated.
func (d *demo) databaseArgument() string {
	if d.ownDatabase {
		return "'" + d.run.DatabaseURL + "'"
	}
	return `"$DATABASE_URL"`
}
