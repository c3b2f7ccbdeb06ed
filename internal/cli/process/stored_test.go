package process

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/internal/telemetry"
)

// TestTheLastKnownRetentionStays shows that the retention of a topic stays known while no broker
// answers. Otherwise the margins would disappear from the metrics now and then during an outage of
// some brokers. An alert about a margin would then not fire, because each time its waiting time
// would begin again.
func TestTheLastKnownRetentionStays(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "letters"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r := newRetention(&Process{cmd: &Flags{}, admin: client, health: telemetry.NewHealth(), log: slog.New(slog.DiscardHandler)})
	stored := func() *time.Duration {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return r.stored(ctx, "letters", "all")
	}
	before := stored()
	if before == nil {
		t.Fatal("the retention is not known")
	}
	if unknown := r.stored(t.Context(), "another", "all"); unknown != nil {
		t.Errorf("a topic that does not exist keeps its records for %s", unknown)
	}
	cluster.Close()
	if after := stored(); after == nil || *after != *before {
		t.Errorf("the retention is %v, want %s", after, before)
	}
}
