package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"projector/internal/devstack"
)

// postgresSettings sets the default durability explicitly. The other settings are usual for a
// server with many writes.
var postgresSettings = map[string]string{
	"fsync":              "on",
	"synchronous_commit": "on",
	"full_page_writes":   "on",
	"shared_buffers":     "1GB",
	"max_wal_size":       "8GB",
	// These two settings are for the method upkeep, which reads the server's log.
	"log_checkpoints":             "on",
	"log_autovacuum_min_duration": "0",
}

// stack holds the servers that the measured programs use.
type stack struct {
	projector string // path of its binary
	self      string // path of this program
	postgres  *devstack.Postgres
	kafka     *devstack.Kafka
	admin     *pgx.Conn // connection to the database postgres
	databases int
	files     string // folder for projection files and the log of PostgreSQL
	log       string // path of the log
	version   string // version of PostgreSQL
}

func startStack(ctx context.Context, projector, self string) (*stack, error) {
	binary, err := filepath.Abs(projector)
	if err != nil {
		return nil, err
	}
	if out, err := exec.CommandContext(ctx, binary, "version").CombinedOutput(); err != nil { //nolint:gosec // G204: the operator's choice
		return nil, fmt.Errorf("%s does not run (make build): %w: %s", projector, err, bytes.TrimSpace(out))
	}
	s := &stack{projector: binary, self: self}
	s.kafka, err = devstack.StartKafka(ctx, devstack.KafkaOptions{
		Settings: map[string]string{"log.retention.hours": "-1"}, ForLoad: true,
	})
	if err == nil {
		s.files, err = os.MkdirTemp("", "projector-bench-")
	}
	var log *os.File
	if err == nil {
		s.log = filepath.Join(s.files, "postgres.log")
		log, err = os.Create(s.log)
	}
	if err == nil {
		s.postgres, err = devstack.StartPostgres(ctx, devstack.PostgresOptions{Settings: postgresSettings, Log: log})
	}
	if err == nil {
		s.admin, err = pgx.Connect(ctx, s.postgres.URL())
	}
	if err == nil {
		err = s.admin.QueryRow(ctx, "SHOW server_version").Scan(&s.version)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// close stops the servers and removes their data. It has no context parameter, because it also runs
// after the caller's context has ended.
func (s *stack) close() error {
	ctx := context.Background()
	var err error
	if s.admin != nil {
		err = s.admin.Close(ctx)
	}
	if s.postgres != nil {
		err = errors.Join(err, s.postgres.Close(ctx))
	}
	if s.kafka != nil {
		err = errors.Join(err, s.kafka.Close(ctx))
	}
	if s.files != "" {
		err = errors.Join(err, os.RemoveAll(s.files))
	}
	return err
}

// database is one database of the benchmark's PostgreSQL server.
type database struct {
	name, url string
}

// newDatabase creates a database. It is a copy of template, or has the projector's schema if
// template is empty.
func (s *stack) newDatabase(ctx context.Context, template string) (database, error) {
	s.databases++
	d := database{name: fmt.Sprintf("bench_%d", s.databases)}
	d.url = s.postgres.DatabaseURL(d.name)
	if template != "" {
		return d, s.execute(ctx, "CREATE DATABASE "+d.name+" TEMPLATE "+template+s.byFile(), "CHECKPOINT")
	}
	if err := s.execute(ctx, "CREATE DATABASE "+d.name); err != nil {
		return d, err
	}
	migrate := exec.CommandContext(ctx, s.projector, "migrate") //nolint:gosec // G204: the operator's choice
	migrate.Env = append(migrate.Environ(), "DATABASE_URL="+d.url)
	if out, err := migrate.CombinedOutput(); err != nil {
		return d, fmt.Errorf("migrate: %w: %s", err, bytes.TrimSpace(out))
	}
	return d, s.execute(ctx, "CHECKPOINT")
}

// byFile returns the SQL option that copies a template as files. Without it, PostgreSQL copies the
// template through the write-ahead log, which takes minutes for a large template. PostgreSQL before
// 15 always copies files and has no such option.
func (s *stack) byFile() string {
	if s.admin.PgConn().ParameterStatus("server_version") < "15" {
		return ""
	}
	return " STRATEGY FILE_COPY"
}

func (s *stack) drop(ctx context.Context, d database) error {
	return s.execute(ctx, "DROP DATABASE IF EXISTS "+d.name+" WITH (FORCE)")
}

func (s *stack) execute(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if _, err := s.admin.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// fullDatabase creates a template database that holds the first versions of all accounts of a
// workload. Two sessions insert the rows, and the index is built afterwards, which is faster.
func (s *stack) fullDatabase(ctx context.Context, w *workload) (database, error) {
	d, err := s.newDatabase(ctx, "")
	if err != nil {
		return d, err
	}
	of, rows := w.table(), w.accounts*int(w.held)
	if err := d.execute(ctx, "ALTER TABLE "+of.relation+" DROP CONSTRAINT "+of.relation+"_pkey"); err != nil {
		return d, err
	}
	filling, fillCtx := errgroup.WithContext(ctx)
	for i := range rawLanes {
		filling.Go(func() error {
			return d.execute(fillCtx, of.fill, rows*i/rawLanes, rows*(i+1)/rawLanes-1, w.accounts)
		})
	}
	if err := filling.Wait(); err != nil {
		return d, err
	}
	for _, statement := range []string{
		"ALTER TABLE " + of.relation + " ADD PRIMARY KEY " + of.key, "VACUUM (ANALYZE) " + of.relation, "CHECKPOINT",
	} {
		if err := d.execute(ctx, statement); err != nil {
			return d, err
		}
	}
	return d, nil
}

// execute runs a statement in a session of its own.
func (d database) execute(ctx context.Context, statement string, args ...any) error {
	conn, err := pgx.Connect(ctx, d.url+"&maintenance_work_mem=1GB")
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement, args...)
	return errors.Join(err, conn.Close(ctx))
}

// broker has the addresses of the broker that stores a topic. This is the real broker or a broker
// in this process.
type broker struct {
	addrs []string
	pid   int // process id, or 0 for this process
}

func (s *stack) broker() broker { return broker{addrs: s.kafka.Addrs(), pid: s.kafka.PID(1)} }

// removeTopic deletes a topic to free the disk. The broker deletes the data later, and removeTopic
// does not wait for that.
func (s *stack) removeTopic(ctx context.Context, topic string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Addrs()...))
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = kadm.NewClient(client).DeleteTopic(ctx, topic)
	return err
}

// machine describes the machine that the results were measured on.
type machine struct {
	CPU      string
	Cores    int
	MemoryMB int64
	Kernel   string
	OS       string
	Go       string
	Kafka    string
	Postgres string
	// FlushMicros is the median time to make 8 KiB durable on the disk of the database.
	FlushMicros int64
}

func describeMachine(postgresVersion string) machine {
	return machine{
		CPU: assigned("/proc/cpuinfo", "model name", ":"), Cores: runtime.NumCPU(),
		MemoryMB: int64(kib(assigned("/proc/meminfo", "MemTotal", ":")) / 1024), Kernel: firstLine("/proc/sys/kernel/osrelease"),
		OS: strings.Trim(assigned("/etc/os-release", "PRETTY_NAME", "="), `"`),
		Go: runtime.Version(), Kafka: devstack.KafkaVersion, Postgres: postgresVersion,
		FlushMicros: flushMicros(),
	}
}

// same reports whether the results of both machines may be in one table.
func (m machine) same(other machine) bool {
	return m.CPU == other.CPU && m.Cores == other.Cores && m.MemoryMB == other.MemoryMB
}

// assigned returns the value of a name in a file. In each line, the separator is between the name
// and the value.
func assigned(path, name, separator string) string {
	text, _ := os.ReadFile(path) //nolint:gosec // G304: constants of this file
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, separator); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func firstLine(path string) string {
	text, err := os.ReadFile(path) //nolint:gosec // G304: constants of this file
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

// flushMicros measures the disk flush that a commit waits for.
func flushMicros() int64 {
	file, err := os.CreateTemp("", "projector-bench-flush-")
	if err != nil {
		return -1
	}
	defer func() { _ = os.Remove(file.Name()) }()
	defer func() { _ = file.Close() }()
	page := make([]byte, 8192)
	const rounds = 101
	took := make([]time.Duration, rounds)
	for i := range took {
		start := time.Now()
		if _, err := file.WriteAt(page, 0); err != nil || file.Sync() != nil {
			return -1
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[rounds/2].Microseconds()
}

func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
