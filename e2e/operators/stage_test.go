package operators_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/e2e/process"
	"projector/e2e/wait"
	"projector/faulttest/pgproxy"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

// eventBytes is the maximum size of an event of a calm account.
const eventBytes = 200

// patience is the default time limit of a wait.
const patience = 3 * time.Minute

// stage is one complete system with servers, consumers, a producer and oracles.
type stage struct {
	t    *testing.T
	rnd  *rand.Rand
	seed uint64

	addrs   []string
	fake    *devstack.Fake // nil if Kafka is real
	topic   string
	kafka   *kgo.Client
	admin   *kadm.Client
	cluster *devstack.Postgres
	url     string
	// These are the database's URLs of an operator's and an approver's login, if four eyes is on.
	operator, approver string
	through            string // the same database, through the proxy
	proxy              *pgproxy.Proxy
	db                 *pgxpool.Pool
	outbox             string
	bank               *pgxpool.Pool // the connection to the outbox's database

	producer  *producer
	mu        sync.Mutex // guards log
	log       [][]*event // by partition
	start     []int64    // the first offsets that retention has left
	late      bool       // the last third of the steps has begun
	moved     bool       // some accounts have events in two partitions: an empty database may get them in another order
	readers   []*reader
	notes     sync.Mutex // guards journal and tally
	journal   []string
	tally     map[string]*outcomes
	parkLimit int
	pruning   bool    // the inbox is pruned in this run
	fetching  bool    // the consumer of account_balance fetches lost events from the outbox
	fourEyes  bool    // each change needs an operator and an approver
	between   bool    // another command may run between a request and its approval
	saved     *backup // nil if there is none
	breaker   string
	memory    string
	limits    []string // flags that limit the waiting events of an account
	rules     rules
	mapping   string // path of the mapping file; empty if there is none
	scratch   int
}

// outcomes counts how often a command succeeded and how often it was refused.
type outcomes struct{ done, refused int }

// reader is a projection, its consumer and its oracle.
type reader struct {
	name, group string
	flags       []string
	query       string
	oracle      oracle
	want        func() map[string]string
	additive    bool
	process     *process.Process
	second      *process.Process // a second instance; nil if there is none
	killed      bool             // an instance was killed since the rows were last compared
	// next has, for each partition, the offset of the next record for the oracle. high has the
	// highest value that next has had.
	next, high []int64
}

func (r *reader) ordered() *ordered { o, _ := r.oracle.(*ordered); return o }

// partitions is the number of partitions at the start. The step addPartition adds more.
const partitions = 2

func newStage(t *testing.T, seed uint64) *stage {
	t.Helper()
	s := &stage{
		t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 7)), tally: map[string]*outcomes{}, log: make([][]*event, partitions), start: make([]int64, partitions),
	}
	s.parkLimit = 2 + s.rnd.IntN(4)
	s.pruning = s.rnd.IntN(3) == 0
	s.breaker = []string{"--breaker-share=0", "--breaker-window=40", "--breaker-window=1000"}[s.rnd.IntN(3)]
	s.fourEyes = s.rnd.IntN(3) == 0
	s.limits = []string{fmt.Sprint("--park-limit=", s.parkLimit)}
	if s.rnd.IntN(4) == 0 {
		s.limits = []string{"--park-limit=1000", fmt.Sprint("--park-bytes=", s.parkLimit*eventBytes)}
	}
	s.memory = []string{"--memory-limit=96MiB", "--memory-limit=512MiB"}[s.rnd.IntN(2)]
	s.rules.factors = [2]int64{1, 1}
	s.rules.ignoring = s.rnd.IntN(3) == 0
	s.fetching = s.rnd.IntN(4) == 0
	s.note("%v, pruning %v, %s, four eyes %v, %s, ignored types %q, fetching %v",
		s.limits, s.pruning, s.breaker, s.fourEyes, s.memory, s.rules.ignored(), s.fetching)
	t.Cleanup(s.printFailure)
	s.servers()
	s.producer = newProducer(s)
	s.addReaders()
	for _, r := range s.readers {
		r.process = s.launch(r)
	}
	return s
}

func (s *stage) servers() {
	s.t.Helper()
	broker := devtest.Broker(s.t)
	s.addrs = broker.Addrs()
	s.fake, _ = broker.(*devstack.Fake)
	s.topic = devtest.Topic(s.t, s.addrs, partitions)
	s.connect()

	s.cluster = must(devstack.StartPostgres(s.t.Context(), devstack.PostgresOptions{TempRoot: devtest.MemoryFolder(), FastLogin: true}))(s.t)
	s.t.Cleanup(func() {
		if err := s.cluster.Close(context.Background()); err != nil {
			s.t.Errorf("close PostgreSQL: %v", err)
		}
	})
	s.url = must(s.cluster.NewDatabase(s.t.Context(), ""))(s.t)
	devtest.Schema(s.t, s.url)
	s.db = must(pgxpool.New(s.t.Context(), s.url))(s.t)
	s.t.Cleanup(s.db.Close)
	s.outbox = must(s.cluster.NewDatabase(s.t.Context(), ""))(s.t)
	s.bank = must(pgxpool.New(s.t.Context(), s.outbox))(s.t)
	s.t.Cleanup(s.bank.Close)
	s.exec(s.bank, "CREATE TABLE outbox (account_id text, version bigint, payload text)")
	s.exec(s.db, ownTables)
	if s.fourEyes {
		s.people()
	}
	proxy, through, err := pgproxy.ListenBefore(s.url)
	if err != nil {
		s.t.Fatal(err)
	}
	s.proxy, s.through = proxy, through
	s.t.Cleanup(func() { _ = s.proxy.Close() })
}

// connect connects the producer to Kafka.
func (s *stage) connect() {
	s.t.Helper()
	s.kafka = must(kgo.NewClient(kgo.SeedBrokers(s.addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(100*time.Millisecond)))(s.t)
	s.t.Cleanup(s.kafka.Close)
	s.admin = kadm.NewClient(s.kafka)
}

// people creates the roles, an operator and an approver, and turns four eyes on.
func (s *stage) people() {
	s.t.Helper()
	s.exec(s.db, string(must(os.ReadFile("../../sql/roles.sql"))(s.t)))
	for _, role := range []string{"operator", "approver"} {
		s.exec(s.db, fmt.Sprintf("CREATE ROLE bank_%[1]s LOGIN PASSWORD 'secret' IN ROLE projector_%[1]s", role))
	}
	s.exec(s.db, "GRANT SELECT, INSERT, UPDATE, DELETE ON counted, pointed TO projector_projection; GRANT SELECT ON counted, pointed TO projector_operator, projector_approver")
	s.operator, s.approver = s.urlOf("bank_operator"), s.urlOf("bank_approver")
	s.migrate()
	s.migrate("--four-eyes=on")
}

func (s *stage) migrate(flags ...string) {
	s.t.Helper()
	if p := s.run(append([]string{"migrate"}, flags...)...); !p.done() {
		s.t.Fatalf("projector migrate %v: %s", flags, p.stderr)
	}
}

// switchFourEyes turns four eyes on or off, if there are an operator and an approver.
func (s *stage) switchFourEyes() {
	s.t.Helper()
	switch {
	case s.operator == "":
		s.migrate()
	case s.fourEyes:
		s.migrate("--four-eyes=off")
		s.fourEyes = false
	default:
		s.migrate("--four-eyes=on")
		s.fourEyes = true
	}
	s.count("migrate", true)
}

// urlOf returns the database's URL of a login.
func (s *stage) urlOf(login string) string {
	u := must(url.Parse(s.url))(s.t)
	u.User = url.UserPassword(login, "secret")
	return u.String()
}

func (s *stage) exec(db *pgxpool.Pool, sql string, args ...any) {
	s.t.Helper()
	if _, err := db.Exec(s.t.Context(), sql, args...); err != nil {
		s.t.Fatalf("%v\n%s", err, sql)
	}
}

// file writes a file for a command to read.
func (s *stage) file(name, text string) string {
	s.t.Helper()
	s.scratch++
	path := filepath.Join(s.t.TempDir(), fmt.Sprint(s.scratch, "-", name))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func (s *stage) addReaders() {
	s.t.Helper()
	balance, order := balances(s.parkLimit, &s.rules), pointsInOrder(s.parkLimit, &s.rules)
	statement, turnover, count := statements(&s.rules), turnovers(&s.rules), counts(&s.rules)
	s.readers = []*reader{
		{name: "account_balance", query: balanceQuery, oracle: balance, want: func() map[string]string { return balanceRows(balance) }},
		{name: "account_statement", query: statementQuery, oracle: statement, want: func() map[string]string { return statementRows(statement.applied) }},
		{name: "daily_turnover", query: turnoverQuery, oracle: turnover, want: func() map[string]string { return turnoverRows(turnover.applied) }, additive: true},
		{name: "random_once", query: countQuery, oracle: count, want: func() map[string]string { return s.rules.countRows(count.applied) }, additive: true},
		{name: "random_ordered", query: orderedQuery, oracle: order, want: func() map[string]string { return s.rules.orderedRows(order) }},
	}
	s.readers[3].flags = []string{"--projection-file=" + s.file("once.sql", onceFile)}
	s.readers[4].flags = []string{"--projection-file=" + s.file("ordered.sql", orderedFile)}
	for _, r := range s.readers {
		r.group, r.next, r.high = s.topic+"-"+r.name, make([]int64, partitions), make([]int64, partitions)
		if r.flags == nil {
			r.flags = []string{"--projection=" + r.name}
		}
	}
}

// launch starts an instance of the reader's consumer.
func (s *stage) launch(r *reader, more ...string) *process.Process {
	s.t.Helper()
	binary := process.Binary{Path: must(binary())(s.t)}
	env := []string{"DATABASE_URL=" + s.through, "KAFKA_BROKERS=" + strings.Join(s.addrs, ","), s.rules.ignored(), "EVENT_MAPPING=" + s.mapping}
	args := append([]string{
		"run", "--topic=" + s.topic, "--group=" + r.group, "--listen=127.0.0.1:0", "--log-format=json", "--session-timeout=6s",
		"--retry-initial=100ms", "--retry-max=1s", s.breaker, s.memory,
	}, append(r.flags, more...)...)
	if s.fetching && r == s.readers[0] {
		env = append(env, "OUTBOX_URL="+s.outbox, "OUTBOX_QUERY="+outboxQuery, "OUTBOX_AFTER=1s")
	}
	p := binary.Launch(s.t, env, append(args, s.limits...)...)
	wait.Until(s.t, patience, "the instance handles SIGTERM", func() string {
		select {
		case <-p.Ended():
			return ""
		default:
			return p.Logged("starting")()
		}
	})
	return p
}

// evict removes the members of a killed consumer's group. The test then need not wait for the
// session timeout.
func (s *stage) evict(r *reader) {
	s.t.Helper()
	groups := must(s.admin.DescribeGroups(s.t.Context(), r.group))(s.t)
	request := kmsg.NewPtrLeaveGroupRequest()
	request.Group = r.group
	for _, m := range groups[r.group].Members {
		member := kmsg.NewLeaveGroupRequestMember()
		member.MemberID = m.MemberID
		request.Members = append(request.Members, member)
	}
	if len(request.Members) > 0 {
		_ = must(request.RequestWith(s.t.Context(), s.kafka))(s.t)
	}
}

// positions returns the stored positions of the reader's consumer.
func (s *stage) positions(r *reader) ([]int64, error) {
	rows, err := s.db.Query(s.t.Context(), "SELECT partition, next_offset FROM projector_position WHERE consumer_group = $1 AND topic = $2", r.group, s.topic)
	if err != nil {
		return nil, err
	}
	at := make([]int64, len(s.log))
	var partition, next int64
	_, err = pgx.ForEachRow(rows, []any{&partition, &next}, func() error { at[partition] = next; return nil })
	return at, err
}

// The method arrived waits until the reader's consumer has processed all records of the topic. The
// oracle then processes the same records.
func (s *stage) arrived(r *reader) {
	s.t.Helper()
	resumed := time.Time{}
	wait.Until(s.t, patience, r.name+" has lag 0", func() string {
		at, err := s.positions(r)
		if err != nil {
			return err.Error()
		}
		for p, next := range at {
			if next != int64(len(s.log[p])) {
				if time.Since(resumed) > time.Second {
					resumed = time.Now()
					s.closeBreaker(r)
				}
				return fmt.Sprintf("partition %d is at %d of %d", p, next, len(s.log[p]))
			}
		}
		return ""
	})
	s.follow(r)
}

// committed waits until the reader's consumer has committed the end of the topic to Kafka.
func (s *stage) committed(r *reader) {
	s.t.Helper()
	wait.Until(s.t, patience, r.name+" has committed the end", func() string {
		offsets, err := s.admin.FetchOffsets(s.t.Context(), r.group)
		if err != nil {
			return err.Error()
		}
		for p, records := range s.records() {
			if at, _ := offsets.Lookup(s.topic, int32(p)); at.At < int64(len(records)) {
				return fmt.Sprintf("partition %d is at %d of %d", p, at.At, len(records))
			}
		}
		return ""
	})
}

// follow makes the oracle process all records of the topic.
func (s *stage) follow(r *reader) {
	for p, records := range s.records() {
		s.consume(r, p, int64(len(records)))
	}
}

// records returns the records of the topic by partition.
func (s *stage) records() [][]*event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// consume makes the oracle process the records of a partition up to an offset.
func (s *stage) consume(r *reader, partition int, until int64) {
	log := s.records()[partition]
	for ; r.next[partition] < until; r.next[partition]++ {
		r.oracle.deliver(log[r.next[partition]], r.next[partition] < r.high[partition])
	}
	r.high[partition] = max(r.high[partition], r.next[partition])
}

// The method settled waits until every consumer has processed all records of the topic. It then
// compares all rows.
func (s *stage) settled(when string) {
	s.t.Helper()
	for _, r := range s.readers {
		s.arrived(r)
	}
	for _, r := range s.readers {
		if r.killed {
			s.committed(r) // until then it may read records again
		}
		s.exact(r, when)
		r.killed = false
	}
}

func (s *stage) note(format string, args ...any) {
	s.notes.Lock()
	defer s.notes.Unlock()
	s.journal = append(s.journal, fmt.Sprintf(format, args...))
}

// printFailure prints the journal if the run has failed.
func (s *stage) printFailure() {
	if !s.t.Failed() {
		return
	}
	s.t.Logf("PROJECTOR_TEST_SEED=%d repeats this run. What was done:\n%s", s.seed, strings.Join(s.journal, "\n"))
}
