//go:build deploy

package deploy_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/e2e/process"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

// In TestAlertsFireInARealOutage, a real Prometheus scrapes a real projector while its PostgreSQL
// is stopped. Exactly the expected alerts fire, and they stop when PostgreSQL is back. Panels of
// the dashboard must not be empty during that time, except those of emptyWhenWell.
func TestAlertsFireInARealOutage(t *testing.T) {
	cluster := devtest.Postgres(t)
	databaseURL, err := cluster.NewDatabase(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	devtest.Schema(t, databaseURL)
	addrs := devtest.Broker(t).Addrs()
	topic := devtest.Topic(t, addrs, 2)
	bank := newBank(t, addrs, topic)
	binary := process.Binary{Path: filepath.Join(t.TempDir(), "projector")}
	if err := process.Build(t.Context(), binary.Path); err != nil {
		t.Fatal(err)
	}
	projector := binary.Launch(t, []string{"DATABASE_URL=" + databaseURL, "KAFKA_BROKERS=" + addrs[0]},
		"run", "--topic="+topic, "--listen=127.0.0.1:0", "--log-format=json", "--retry-max=2s")
	watch := startPrometheus(t, listening(t, projector))

	bank.credit(10)
	watch.await("ready", projector.Answers("/readyz", 200, ""))
	watch.expect("all is well")
	watch.sees("projector_last_progress_timestamp_seconds > 0") // the alert needs the time of the last progress

	if err := cluster.Stop(t.Context(), devstack.Immediate); err != nil {
		t.Fatal(err)
	}
	bank.credit(10)
	watch.expect("PostgreSQL is stopped", "ProjectorNotReady", "ProjectorRetrying", "ProjectorStuck")
	watch.panelsShow()
	watch.labelsAreAsScripted()

	if err := cluster.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	watch.await("ready again", projector.Answers("/readyz", 200, ""))
	watch.expect("PostgreSQL is back")

	bank.send("a poison event")
	watch.expect("a poison event", "ProjectorDeadLetters")

	projector.Terminate()
	watch.await("nobody is left", func() string {
		firing, err := watch.firing()
		for _, name := range firing {
			if name == "ProjectorAbsent" {
				return ""
			}
		}
		return fmt.Sprintf("firing: %v (%v)", firing, err)
	})
}

// The function listening returns the address of a projector's pages, from its log.
func listening(t *testing.T, p *process.Process) string {
	t.Helper()
	timer := time.NewTimer(3 * time.Minute)
	defer timer.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, line := range p.Lines() {
			var entry struct{ Msg, HTTP string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "starting" {
				return entry.HTTP
			}
		}
		select {
		case <-tick.C:
		case <-timer.C:
			t.Fatalf("the projector has not started:\n%s", p.Log())
		}
	}
}

// bank produces the events of one account.
type bank struct {
	t       *testing.T
	client  *kgo.Client
	version int
}

func newBank(t *testing.T, addrs []string, topic string) *bank {
	t.Helper()
	return &bank{t: t, client: devtest.Client(t, addrs, kgo.DefaultProduceTopic(topic))}
}

func (b *bank) credit(n int) {
	b.t.Helper()
	for range n {
		b.version++
		b.send(fmt.Sprintf(`{"eventId":"e-%d","eventType":"FundsCredited","accountId":"acc-1","version":%d,`+
			`"occurredAt":"2026-01-01T00:00:00Z","data":{"amount":"1.00","currency":"EUR"}}`, b.version, b.version))
	}
}

func (b *bank) send(value string) {
	b.t.Helper()
	record := &kgo.Record{Key: []byte("acc-1"), Value: []byte(value)}
	if err := b.client.ProduceSync(b.t.Context(), record).FirstErr(); err != nil {
		b.t.Fatal(err)
	}
}
