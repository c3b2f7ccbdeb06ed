// Package clitest helps tests to run commands. Each test has its own topic and its own database.
// Tests that use it must be in package NAME_test, because clitest imports all commands.
package clitest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/cli"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/devstack/devtest"
	"projector/readmodel"
	"projector/readmodel/readmodeltest"
)

// Stage is a topic and a database on which a test runs commands.
type Stage struct {
	T        *testing.T
	URL      string
	Addrs    []string
	Topic    string
	Pool     *pgxpool.Pool
	Client   *kgo.Client
	Produced int

	own string // name of the custom projection; empty: none
}

// NewStage makes a stage. Its topic has one partition.
func NewStage(t *testing.T) *Stage {
	t.Helper()
	return StageOn(t, devtest.Broker(t).Addrs())
}

// StageOn makes a stage on given brokers. Its topic has one partition.
func StageOn(t *testing.T, brokers []string) *Stage {
	t.Helper()
	return stageOf(t, brokers, 1)
}

// stageOf makes a stage on given brokers. Its topic has the given number of partitions.
func stageOf(t *testing.T, brokers []string, partitions int32) *Stage {
	t.Helper()
	url := devtest.Database(t)
	return &Stage{
		T: t, URL: url, Addrs: brokers, Topic: devtest.Topic(t, brokers, partitions),
		Pool: readmodeltest.OpenPoolAt(t, url), Client: devtest.Client(t, brokers),
	}
}

// Servers returns args with the flags of the stage's servers.
func (s *Stage) Servers(args []string) []string {
	var servers []string
	if args[0] != "inspect" {
		servers = append(servers, "--database-url="+s.URL)
	}
	if slices.Contains([]string{"run", "dlq", "lag", "rebuild", "inspect", "position", "pause", "resume", "approve"}, args[0]) {
		servers = append(servers, "--brokers="+strings.Join(s.Addrs, ","), "--topic="+s.Topic, "--log-level=error")
	}
	return append(args, servers...)
}

// Command runs a command and returns exit status, stdout and stderr.
func (s *Stage) Command(args ...string) (status int, out, errOut string) {
	s.T.Helper()
	var stdout, stderr bytes.Buffer
	status = Execute(s.T.Context(), s.Servers(args), &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

// Must runs a command that has to succeed and returns what it printed.
func (s *Stage) Must(args ...string) string {
	s.T.Helper()
	status, out, errOut := s.Command(args...)
	if status != exit.OK {
		s.T.Fatalf("%v: status %d\n%s%s", args, status, out, errOut)
	}
	return out
}

// Refused runs a command that has to fail with a status, and returns its stderr.
func (s *Stage) Refused(want int, args ...string) string {
	s.T.Helper()
	status, out, errOut := s.Command(args...)
	if status != want {
		s.T.Fatalf("%v: status %d, want %d\n%s%s", args, status, want, out, errOut)
	}
	return errOut
}

// Lines runs a command and reads the JSON lines it prints.
func (s *Stage) Lines(args ...string) []map[string]any {
	s.T.Helper()
	return s.parse(args, s.Must(append(args, "--output=json")...))
}

// Some runs a command that must print a part of its result and then fail. It returns the JSON lines
// and stderr.
func (s *Stage) Some(args ...string) (lines []map[string]any, said string) {
	s.T.Helper()
	began := time.Now()
	status, out, errOut := s.Command(append(args, "--output=json")...)
	if took := time.Since(began); status != exit.Failed || took > time.Minute {
		s.T.Fatalf("%v: status %d after %v\n%s%s", args, status, took, out, errOut)
	}
	return s.parse(args, out), errOut
}

// Produce appends records to the source topic.
func (s *Stage) Produce(values ...string) {
	s.T.Helper()
	for _, v := range values {
		s.Append(&kgo.Record{Key: []byte("k"), Value: []byte(v)})
	}
}

// Append appends a record to the source topic.
func (s *Stage) Append(record *kgo.Record) {
	s.T.Helper()
	record.Topic = s.Topic
	if err := s.Client.ProduceSync(s.T.Context(), record).FirstErr(); err != nil {
		s.T.Fatal(err)
	}
	s.Produced++
}

// Consuming runs a consumer until it has stored the positions after all produced records. Then
// Consuming calls the function do, if do is not nil, and stops the consumer.
func (s *Stage) Consuming(do func()) {
	s.T.Helper()
	run := s.run("127.0.0.1:0")
	s.Await("SELECT coalesce(sum(next_offset), 0) = $1 FROM projector_position WHERE projection = $2",
		s.Produced, cmp.Or(s.own, os.Getenv("PROJECTION"), readmodel.BalanceName))
	if do != nil {
		do()
	}
	run.Stop("")
}

// patience is the time limit for a condition that is expected to become true. It is long enough for
// a busy machine.
const patience = 3 * time.Minute

// Await waits until a query returns true.
func (s *Stage) Await(query string, args ...any) {
	s.T.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	ctx, cancel := context.WithTimeout(s.T.Context(), patience)
	defer cancel()
	for holds := false; ; {
		if err := s.Pool.QueryRow(ctx, query, args...).Scan(&holds); err != nil {
			s.T.Fatalf("waiting for %s: %v", query, err)
		}
		if holds {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// EventOf returns an event in JSON. The amount must be JSON too.
func EventOf(account string, version int, amount string) string {
	return fmt.Sprintf(`{"eventId":"%s-%d","eventType":"FundsCredited","accountId":%q,"version":%d,`+
		`"occurredAt":"2026-01-01T00:00:00.5Z","data":{"amount":%s,"currency":"EUR"}}`, account, version, account, version, amount)
}

// Execute runs one command line as main does, and returns the exit status.
func Execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return cli.Main(ctx, args, stdout, stderr, flags.BuildInfo{Version: "dev"})
}

// SeveralDeadLetters produces records that become dead letters of several classes. The records make
// a gap in acc-a. They also contain an invalid first event of acc-b, an unreadable record and a
// conflict.
func (s *Stage) SeveralDeadLetters() {
	s.T.Helper()
	s.Produce(
		EventOf("acc-a", 1, `"10.25"`), EventOf("acc-a", 3, `"4"`), EventOf("acc-a", 4, `"8"`), EventOf("acc-a", 6, `"32"`),
		EventOf("acc-b", 1, `7.5`), EventOf("acc-b", 2, `"1"`),
		`secret`,
		strings.Replace(EventOf("acc-a", 1, `"1"`), "acc-a-1", "another", 1),
	)
	s.Consuming(nil)
}

const (
	ListKeys = "dlq_partition dlq_offset class status account_id event_id expected_version received_version " +
		"topic partition offset failed_at replays message"
	statusFields = "account_id received_version status"
)

// DeleteRecords deletes the records before an offset, as retention does.
func (s *Stage) DeleteRecords(before int64) {
	s.T.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(s.Topic, 0, before, -1)
	answer, err := kadm.NewClient(s.Client).DeleteRecords(s.T.Context(), offsets)
	if err == nil {
		err = answer.Error()
	}
	if err != nil {
		s.T.Fatal(err)
	}
}

// Exec runs a statement.
func (s *Stage) Exec(sql string, args ...any) {
	s.T.Helper()
	if _, err := s.Pool.Exec(s.T.Context(), sql, args...); err != nil {
		s.T.Fatalf("%v\n%s", err, sql)
	}
}

// UseMapping makes all commands use a mapping from now on, and returns the path of its file.
func (s *Stage) UseMapping(text string) (path string) {
	s.T.Helper()
	path = filepath.Join(s.T.TempDir(), "bank.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.T.Fatal(err)
	}
	s.T.Setenv("EVENT_MAPPING", path)
	return path
}

// UseCustomProjection makes the stage run a custom projection from now on, and returns the path of
// its file.
func (s *Stage) UseCustomProjection(name, text string) (path string) {
	s.T.Helper()
	path = filepath.Join(s.T.TempDir(), name+".sql")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.T.Fatal(err)
	}
	s.T.Setenv("PROJECTION_FILE", path)
	s.own = name
	return path
}

// UseProjection makes the stage run another projection from now on.
func (s *Stage) UseProjection(name string) {
	s.T.Helper()
	s.T.Setenv("PROJECTION", name)
}
