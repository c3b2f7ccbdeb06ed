// Command own-demo runs the custom projection docs/examples/loyalty.sql on this machine. It uses a
// broker in this process, its own PostgreSQL and the projector as a program. Some events arrive
// twice and one arrives late. It exits with 0 if the table has the expected result, and with 1
// otherwise. `make demo-own` builds the projector and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/devstack"
)

const (
	topic    = "account-events"
	accounts = 50
	versions = 40
	// This version of this account is sent late.
	lateAccount, lateVersion = 7, 3
	within                   = 2 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	d := &demo{out: os.Stdout}
	flag.StringVar(&d.projector, "projector", "bin/projector", "the program to run")
	flag.StringVar(&d.folder, "examples", "docs/examples", "the folder of the examples")
	flag.BoolVar(&d.stay, "stay", false, "keep everything running afterwards, until Ctrl-C")
	flag.Parse()
	err := d.play(ctx)
	d.end()
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "own-demo:", err)
		os.Exit(1)
	}
}

type demo struct {
	out               io.Writer
	projector, folder string
	stay              bool
	env               []string
	db                *pgx.Conn
	kafka             *kgo.Client
	want              map[string]int // expected points by account
	running           *exec.Cmd
	closers           []func(context.Context) error
}

// play runs the demo. It returns an error that names the differences.
func (d *demo) play(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	d.want = map[string]int{}
	file := d.folder + "/loyalty.sql"
	for _, step := range []func(context.Context) error{
		d.start,
		func(ctx context.Context) error { return d.show(ctx, "migrate") },
		d.tables,
		func(ctx context.Context) error { return d.show(ctx, "projection", "check", file) },
		d.produce,
		func(ctx context.Context) error { return d.run(ctx, file) },
		d.awaitGap,
		func(ctx context.Context) error { return d.show(ctx, "gaps", "--projection-file="+file) },
		d.produceLate,
		d.converge,
	} {
		if err := step(bounded); err != nil {
			return err
		}
	}
	if !d.stay {
		return nil
	}
	_, _ = fmt.Fprintf(d.out, "\nEverything stays, until Ctrl-C. In another terminal:\n\n  export %s PROJECTION_FILE=%s\n  %s lag\n",
		strings.Join(d.env, " "), file, d.projector)
	<-ctx.Done()
	return nil
}

func (d *demo) start(ctx context.Context) error {
	broker, err := devstack.StartFake(ctx, devstack.FakeOptions{})
	if err != nil {
		return err
	}
	d.closers = append(d.closers, broker.Close)
	server, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{})
	if err != nil {
		return err
	}
	d.closers = append(d.closers, server.Close)
	if d.kafka, err = kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...)); err != nil {
		return err
	}
	d.closers = append(d.closers, func(context.Context) error { d.kafka.Close(); return nil })
	if d.db, err = pgx.Connect(ctx, server.URL()); err != nil {
		return err
	}
	d.closers = append(d.closers, d.db.Close)
	d.env = []string{"KAFKA_BROKERS=" + strings.Join(broker.Addrs(), ","), "DATABASE_URL='" + server.URL() + "'"}
	_, err = kadm.NewClient(d.kafka).CreateTopic(ctx, 4, 1, nil, topic)
	return err
}

// end stops everything that was started, in reverse order.
func (d *demo) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if d.running != nil {
		_ = d.running.Process.Signal(syscall.SIGTERM)
		_ = d.running.Wait()
	}
	for i := len(d.closers) - 1; i >= 0; i-- {
		_ = d.closers[i](ctx)
	}
}

func (d *demo) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, d.projector, args...) //nolint:gosec // G204: the program that was built for this
	cmd.Env = os.Environ()
	for _, variable := range d.env {
		cmd.Env = append(cmd.Env, strings.ReplaceAll(variable, "'", ""))
	}
	cmd.Stderr = os.Stderr
	return cmd
}

// show runs a command and prints its output.
func (d *demo) show(ctx context.Context, args ...string) error {
	_, _ = fmt.Fprintf(d.out, "\n$ projector %s\n", strings.Join(args, " "))
	cmd := d.command(ctx, args...)
	cmd.Stdout = d.out
	return cmd.Run()
}

func (d *demo) run(ctx context.Context, file string) error {
	args := []string{"run", "--projection-file=" + file, "--listen=127.0.0.1:0", "--log-level=warn"}
	_, _ = fmt.Fprintf(d.out, "\n$ projector %s\n", strings.Join(args, " "))
	d.running = d.command(context.WithoutCancel(ctx), args...)
	return d.running.Start()
}

// tables creates the example's tables, which belong to the user of a custom projection.
func (d *demo) tables(ctx context.Context) error {
	text, err := os.ReadFile(d.folder + "/tables.sql")
	if err == nil {
		_, err = d.db.Exec(ctx, string(text))
	}
	return err
}

// record returns the record of an event. Every third event spends points, and the other events earn
// points.
func (d *demo) record(account, version int) *kgo.Record {
	kind, points := "PointsEarned", account+version
	if version%3 == 0 {
		kind = "PointsSpent"
	}
	id := fmt.Sprintf("acc-%02d", account)
	return &kgo.Record{Topic: topic, Key: []byte(id), Value: fmt.Appendf(nil,
		`{"eventId":"%s-%d","eventType":%q,"accountId":%q,"version":%d,"occurredAt":"2026-01-01T00:00:00Z","data":{"points":%d}}`,
		id, version, kind, id, version, points)}
}

// produce sends all events except the late event. It sends every fifth event twice.
func (d *demo) produce(ctx context.Context) error {
	var records []*kgo.Record
	for version := 1; version <= versions; version++ {
		for account := range accounts {
			r := d.record(account, version)
			points := account + version
			if version%3 == 0 {
				points = -points
			}
			d.want[string(r.Key)] += points
			if account == lateAccount && version == lateVersion {
				continue
			}
			records = append(records, r)
			if (account+version)%5 == 0 {
				records = append(records, d.record(account, version))
			}
		}
	}
	_, _ = fmt.Fprintf(d.out, "\n%d records of %d accounts are sent, some of them twice; version %d of acc-%02d is held back\n", len(records), accounts, lateVersion, lateAccount)
	return d.kafka.ProduceSync(ctx, records...).FirstErr()
}

func (d *demo) produceLate(ctx context.Context) error {
	_, _ = fmt.Fprintf(d.out, "\nversion %d of acc-%02d is sent\n", lateVersion, lateAccount)
	return d.kafka.ProduceSync(ctx, d.record(lateAccount, lateVersion)).FirstErr()
}

// await repeats the query until its result is true.
func (d *demo) await(ctx context.Context, query string, args ...any) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var holds bool
		if err := d.db.QueryRow(ctx, query, args...).Scan(&holds); err != nil || holds {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("it has not come to an end in time")
		}
	}
}

// awaitGap waits until all records are consumed and the events after the gap are parked.
func (d *demo) awaitGap(ctx context.Context) error {
	return d.await(ctx, `SELECT (SELECT count(*) FROM loyalty WHERE version = $1) = $2 AND (SELECT count(*) FROM projection_parked_event) = $3`,
		versions, accounts-1, versions-lateVersion)
}

func (d *demo) converge(ctx context.Context) error {
	if err := d.await(ctx, "SELECT count(*) = $1 FROM loyalty WHERE version = $2", accounts, versions); err != nil {
		return err
	}
	rows, err := d.db.Query(ctx, "SELECT account_id, points FROM loyalty")
	if err != nil {
		return err
	}
	var (
		account string
		points  int
		wrong   error
	)
	_, err = pgx.ForEachRow(rows, []any{&account, &points}, func() error {
		if points != d.want[account] {
			wrong = errors.Join(wrong, fmt.Errorf("%s has %d points, want %d", account, points, d.want[account]))
		}
		return nil
	})
	if err := errors.Join(err, wrong); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(d.out, "the points of all %d accounts are what was sent: each event once, in order\n", accounts)
	return nil
}
