package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"projector/readmodel/statement"
	"projector/readmodel/turnover"
)

// subject is a program or a limit that is measured with a workload.
type subject string

const (
	subjectRaw       subject = "raw"
	subjectDecode    subject = "decode"
	subjectProjector subject = "projector"
	subjectKfake     subject = "kfake"
	subjectSteady    subject = "steady"
	subjectReaders   subject = "readers" // the steady load while readers wait for events
	subjectStart     subject = "start"   // repeated starts, each until the first row
	subjectPeer      subject = "spring-batch"
	subjectOther     subject = "other" // the other binary of the projector, from the flag --beside
)

// shape is how events are distributed over accounts.
type shape int

const (
	uniform shape = iota
	zipf          // Zipf distribution with exponent 1.1: every sixth event is for the busiest account
	once          // every event is the first of its account
)

// workload is a topic, the database that it is projected into, and the subjects that are measured
// with it.
type workload struct {
	name     string
	group    string // selected by --only; the workloads of a group run alternately
	about    string
	accounts int
	events   int
	shape    shape
	// fixed means that --scale does not change the number of accounts, because the workload
	// measures the effect of this number.
	fixed      bool
	partitions int32
	projection string // empty: account_balance
	// held is how many versions of each account the database already holds. The events continue
	// from there.
	held int32
	// large means that the workload's group runs only if --only names the group, and that it runs
	// once. The database is not copied.
	large bool
	// again means that the database already holds the result of the topic. A new group then reads
	// the whole topic again.
	again    bool
	subjects []subject
	least    int // minimum number of events at any scale
	// replicas is the number of replicas that start together in one consumer group. 0 means one
	// replica and no report of shares.
	replicas int
	// stream is the name of the topic's events. Workloads with the same stream read the same topic.
	stream string
	// turn makes the name of the topic unique if each run has its own topic.
	turn int
	// memory is the --memory-limit in MiB. 0 means memoryLimit.
	memory int
	// rate is the constant rate of a steady workload in events/s. 0 means steadyRate.
	rate int
}

// own returns the subject that runs the projector itself, or "" if there is none.
func (w *workload) own() subject {
	for _, s := range w.subjects {
		if s == subjectProjector || s == subjectSteady || s == subjectStart {
			return s
		}
	}
	return ""
}

const million = 1_000_000

// workloads are run in this order.
var workloads = []workload{
	{
		name: "uniform", group: "uniform", accounts: million, events: 5 * million, partitions: 8,
		about:    "events spread evenly over the accounts",
		subjects: []subject{subjectRaw, subjectDecode, subjectProjector, subjectKfake},
	},
	{
		name: "duplicates", group: "duplicates", accounts: million, events: 5 * million, partitions: 8, again: true,
		about:    "as uniform, redelivered as a whole to a new group over the database that has it all",
		subjects: []subject{subjectDecode, subjectProjector},
	},
	{
		name: "hot", group: "hot", accounts: 1000, events: 5 * million, partitions: 8, shape: zipf, fixed: true,
		about:    "1,000 accounts, zipf s = 1.1",
		subjects: []subject{subjectDecode, subjectProjector},
	},
	{
		name: "cold", group: "cold", accounts: 2 * million, events: 2 * million, partitions: 8, shape: once,
		about:    "every event is the first of its account",
		subjects: []subject{subjectRaw, subjectDecode, subjectProjector},
	},
	{
		name: "steady", group: "steady", accounts: 10_000, events: 30_000, partitions: 8, fixed: true,
		least:    8000, // the warm-up takes 3,000
		about:    "1,000 events/s over 10,000 accounts, from produce acknowledged to committed row",
		subjects: []subject{subjectSteady},
	},
	{
		name: "readers", group: "readers", accounts: 10_000, events: 40_000, partitions: 8, fixed: true,
		least:    8000, // the warm-up takes 3,000
		about:    "1,000 events/s over 10,000 accounts, with and without 10,000 readers who wait for the next version of one each",
		subjects: []subject{subjectSteady, subjectReaders},
	},
	{
		name: "start", group: "start", accounts: 10_000, events: 1000, partitions: 8, fixed: true,
		about:    "from the start of the process to the first committed row, of a group that has positions",
		subjects: []subject{subjectStart},
	},
	limited(128), limited(memoryLimit),
	{
		name: "memory", group: "memory", accounts: million, events: 20 * million, partitions: 8,
		about:    "a long catch-up",
		subjects: []subject{subjectProjector},
	},
	{
		name: "cost-1m", group: "cost", accounts: million, events: 5 * million, partitions: 8, held: 1,
		about:    "uniform, into a table that holds 1,000,000 accounts",
		subjects: []subject{subjectRaw, subjectProjector},
	},
	{
		name: "cost-10m", group: "cost", accounts: 10 * million, events: 5 * million, partitions: 8, held: 1,
		about:    "uniform, into a table that holds 10,000,000 accounts",
		subjects: []subject{subjectRaw, subjectProjector},
	},
	{
		name: "statement", group: "statement", accounts: 400_000, events: 2 * million, partitions: 8,
		about:      "uniform, one row per event: the projection account_statement",
		projection: statement.Name, subjects: []subject{subjectRaw, subjectProjector},
	},
	{
		name: "turnover", group: "turnover", accounts: 400_000, events: 2 * million, partitions: 8,
		about:      "uniform, all of one day and currency: the projection daily_turnover",
		projection: turnover.Name, subjects: []subject{subjectRaw, subjectProjector},
	},
	{
		name: "once", group: "once", accounts: 400_000, events: 2 * million, partitions: 8,
		about:      "uniform, a projection of one's own, mode once",
		projection: ownOnce, subjects: []subject{subjectRaw, subjectProjector},
	},
	{
		name: "ordered", group: "ordered", accounts: 400_000, events: 2 * million, partitions: 8,
		about:      "uniform, a projection of one's own, mode ordered",
		projection: ownOrdered, subjects: []subject{subjectRaw, subjectProjector},
	},
	partitioned(1), partitioned(8), partitioned(64), partitioned(256),
	replicated(1), replicated(2), replicated(4),
	{
		name: "balances-100m", group: "balances-100m", accounts: 100 * million, events: 18 * million, partitions: 8,
		held: 1, large: true, rate: 5000,
		least:    40_000, // the warm-up takes 8,000
		about:    "5,000 events/s for an hour, uniform, into a table that holds 100,000,000 accounts",
		subjects: []subject{subjectSteady},
	},
	{
		name: "statement-50m", group: "statement-50m", accounts: million, events: 5 * million, partitions: 8,
		held: 50, large: true, stream: "statement-50m",
		about:      "uniform, account_statement with 50,000,000 rows: 50 of each account, in random order of their key",
		projection: statement.Name, subjects: []subject{subjectProjector},
	},
	{
		name: "statement-empty", group: "statement-50m", accounts: million, events: 5 * million, partitions: 8,
		large: true, stream: "statement-50m",
		about:      "the same events, into an empty table",
		projection: statement.Name, subjects: []subject{subjectProjector},
	},
}

func limited(memory int) workload {
	return workload{
		name: fmt.Sprintf("limit-%d", memory), group: "limit", accounts: 200_000, events: 2 * million, partitions: 8,
		about:    fmt.Sprintf("uniform over 200,000 accounts, --memory-limit=%dMiB", memory),
		subjects: []subject{subjectProjector}, memory: memory,
	}
}

func partitioned(n int32) workload {
	return workload{
		name: fmt.Sprintf("partitions-%d", n), group: "partitions", accounts: 400_000, events: 2 * million, partitions: n,
		about:    fmt.Sprintf("uniform over %d partitions, one instance", n),
		subjects: []subject{subjectProjector},
	}
}

func replicated(n int) workload {
	return workload{
		name: fmt.Sprintf("replicas-%d", n), group: "replicas", accounts: 400_000, events: 2 * million, partitions: 8,
		about:    fmt.Sprintf("uniform, %d of 8 partitions an instance", 8/n),
		subjects: []subject{subjectProjector}, replicas: n, stream: "replicas",
	}
}

func (w *workload) topic() string {
	if w.turn > 0 {
		return fmt.Sprintf("bench-%s-%d", w.name, w.turn)
	}
	return "bench-" + cmp.Or(w.stream, w.name)
}

// firstVersion returns the version of an account's first event in the topic.
func (w *workload) firstVersion() int32 {
	return w.held + 1
}

// scaled multiplies the numbers of events and accounts by scale, but neither becomes smaller than
// its minimum. A fixed workload keeps its number of accounts.
func (w workload) scaled(scale float64) workload {
	w.events = max(1000, w.least, int(float64(w.events)*scale))
	if !w.fixed {
		w.accounts = max(200, int(float64(w.accounts)*scale))
	}
	if w.shape == once {
		w.accounts = w.events
	}
	return w
}

// groups lists the groups in order.
func groups() []string {
	var names []string
	for _, w := range workloads {
		if !slices.Contains(names, w.group) {
			names = append(names, w.group)
		}
	}
	return names
}

// selected returns the scaled workloads of the named groups, with one slice for each group. If no
// group is named, it returns the workloads of all groups that are not large.
func selected(only []string, scale float64) ([][]workload, error) {
	known := groups()
	for _, name := range only {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("--only: %q is unknown; there are %s", name, strings.Join(known, ", "))
		}
	}
	var chosen [][]workload
	for _, name := range known {
		var group []workload
		for _, w := range workloads {
			if w.group == name {
				group = append(group, w.scaled(scale))
			}
		}
		if slices.Contains(only, name) || len(only) == 0 && !group[0].large {
			chosen = append(chosen, group)
		}
	}
	return chosen, nil
}

func workloadNamed(name string, scale float64) (workload, error) {
	for _, w := range workloads {
		if w.name == name {
			return w.scaled(scale), nil
		}
	}
	return workload{}, fmt.Errorf("no workload %q", name)
}
