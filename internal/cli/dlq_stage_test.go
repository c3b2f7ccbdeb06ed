package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/devstack/devtest"
	"projector/readmodel"
)

// stage is a topic, a database and the commands between them.
type stage struct {
	t        *testing.T
	url      string
	addrs    []string
	topic    string
	pool     *pgxpool.Pool
	client   *kgo.Client
	produced int
}

func newStage(t *testing.T) *stage {
	t.Helper()
	return stageOn(t, devtest.Broker(t).Addrs())
}

// stageOn is a stage on given brokers, its topic of one partition.
func stageOn(t *testing.T, brokers []string) *stage {
	t.Helper()
	return stageOf(t, brokers, 1)
}

// stageOf is a stage on given brokers, its topic of so many partitions.
func stageOf(t *testing.T, brokers []string, partitions int32) *stage {
	t.Helper()
	s := &stage{t: t, url: devtest.Database(t), addrs: brokers}
	s.topic = devtest.Topic(t, s.addrs, partitions)
	var err error
	if s.pool, err = readmodel.OpenPool(t.Context(), s.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.pool.Close)
	if s.client, err = kgo.NewClient(kgo.SeedBrokers(s.addrs...)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	return s
}

// servers are the flags that lead a command to the stage.
func (s *stage) servers(args []string) []string {
	flags := []string{"--database-url=" + s.url}
	if slices.Contains([]string{"run", "dlq", "lag", "rebuild"}, args[0]) {
		flags = append(flags, "--brokers="+strings.Join(s.addrs, ","), "--topic="+s.topic, "--log-level=error")
	}
	return append(args, flags...)
}

// command runs a command and returns exit status, stdout and stderr.
func (s *stage) command(args ...string) (status int, out, errOut string) {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	status = execute(s.t.Context(), s.servers(args), &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

// must runs a command that has to succeed and returns what it printed.
func (s *stage) must(args ...string) string {
	s.t.Helper()
	status, out, errOut := s.command(args...)
	if status != exitOK {
		s.t.Fatalf("%v: status %d\n%s%s", args, status, out, errOut)
	}
	return out
}

// refused runs a command that has to fail with a status and returns what it said.
func (s *stage) refused(want int, args ...string) string {
	s.t.Helper()
	status, out, errOut := s.command(args...)
	if status != want {
		s.t.Fatalf("%v: status %d, want %d\n%s%s", args, status, want, out, errOut)
	}
	return errOut
}

// lines runs a command and reads the JSON lines it prints.
func (s *stage) lines(args ...string) []map[string]any {
	s.t.Helper()
	var all []map[string]any
	for line := range strings.Lines(s.must(append(args, "--output=json")...)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			s.t.Fatalf("%v: %v\n%s", args, err, line)
		}
		all = append(all, m)
	}
	return all
}

// pick gives the named fields of each line as text, the lines apart by a comma.
func pick(lines []map[string]any, fields ...string) string {
	var all []string
	for _, line := range lines {
		var some []string
		for _, f := range fields {
			text := fmt.Sprint(line[f])
			if line[f] == nil {
				text = "null"
			}
			some = append(some, text)
		}
		all = append(all, strings.Join(some, " "))
	}
	return strings.Join(all, ", ")
}

// keys are the members of the JSON object in text, in their order.
func keys(t *testing.T, text string) string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	var names []string
	if _, err := decoder.Token(); err != nil {
		t.Fatal(err)
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return strings.Join(names, " ")
}

// produce appends records to the source topic.
func (s *stage) produce(values ...string) {
	s.t.Helper()
	for _, v := range values {
		if err := s.client.ProduceSync(s.t.Context(), &kgo.Record{Topic: s.topic, Key: []byte("k"), Value: []byte(v)}).FirstErr(); err != nil {
			s.t.Fatal(err)
		}
		s.produced++
	}
}

// consuming runs a consumer until all that is produced is durable and do, which
// may be nil, has returned; then stops it.
func (s *stage) consuming(do func()) {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	defer stop()
	ended := make(chan int, 1)
	var stderr bytes.Buffer
	go func() {
		ended <- execute(ctx, s.servers([]string{"run", "--listen=127.0.0.1:0"}), &bytes.Buffer{}, &stderr)
	}()
	s.await("SELECT coalesce(sum(next_offset), 0) = $1 FROM projector_position WHERE projection = $2",
		s.produced, cmp.Or(os.Getenv("PROJECTION"), readmodel.BalanceName))
	if do != nil {
		do()
	}
	stop()
	if status := <-ended; status != exitOK {
		s.t.Fatalf("run: status %d\n%s", status, stderr.String())
	}
}

// await waits until a query answers true.
func (s *stage) await(query string, args ...any) {
	s.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for holds := false; !holds; {
		if err := s.pool.QueryRow(ctx, query, args...).Scan(&holds); err != nil {
			s.t.Fatalf("waiting for %s: %v", query, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// event is an event; amount is JSON.
func eventOf(account string, version int, amount string) string {
	return fmt.Sprintf(`{"eventId":"%s-%d","eventType":"FundsCredited","accountId":%q,"version":%d,`+
		`"occurredAt":"2026-01-01T00:00:00.5Z","data":{"amount":%s,"currency":"EUR"}}`, account, version, account, version, amount)
}

func equal(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}
