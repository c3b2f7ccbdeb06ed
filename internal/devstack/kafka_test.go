//go:build kafka

package devstack

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func startKafka(t *testing.T, options KafkaOptions) *Kafka {
	t.Helper()
	began := time.Now()
	k, err := StartKafka(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d broker(s) up after %s", len(k.Addrs()), time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := k.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return k
}

// TestKafkaSurvivesTheLossOfABroker kills one of three brokers. TestRealLogLostItsEnd of package e2e
// stops a single broker in order, and needs its records after the next start.
func TestKafkaSurvivesTheLossOfABroker(t *testing.T) {
	k := startKafka(t, KafkaOptions{Brokers: 3})
	createTopic(t, k.Addrs(), "topic")
	produce(t, k.Addrs(), "topic", "before")
	addrs := k.Addrs()
	if err := k.Kill(2); err != nil {
		t.Fatal(err)
	}
	if pid := k.PID(2); pid != 0 {
		t.Errorf("pid of the killed node: got %d, want 0", pid)
	}
	produce(t, addrs, "topic", "during")
	if err := k.StartNode(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(k.Addrs(), addrs) {
		t.Errorf("addresses changed: %v, were %v", k.Addrs(), addrs)
	}
	got := consume(t, addrs, "topic", 2)
	if !slices.Equal(got, []string{"before", "during"}) {
		t.Errorf("consumed %q", got)
	}
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(k.dir); !os.IsNotExist(err) {
		t.Errorf("folder after Close: %v", err)
	}
}

// TestFormatWithoutTheTool formats a folder with Kafka's tool and another one without it. Only the
// ids may differ, which are random.
func TestFormatWithoutTheTool(t *testing.T) {
	byTool, prepared := formatted(t, true), formatted(t, false)
	if !maps.Equal(byTool, prepared) {
		t.Errorf("Kafka's tool writes %v, not %v", byTool, prepared)
	}
}

// formatted formats a new node. It returns the node's properties, and the length of each id instead
// of the id.
func formatted(t *testing.T, byTool bool) map[string]string {
	t.Helper()
	k, err := newKafka(t.Context(), KafkaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close(context.Background()) })
	if k.usePrepared(t.Context()); k.bootstrap == "" {
		t.Fatal("nothing is prepared")
	}
	if byTool {
		k.bootstrap = ""
	}
	if err := k.format(t.Context()); err != nil {
		t.Fatal(err)
	}
	data := k.nodes[0].dataDir()
	if _, err := os.Stat(filepath.Join(data, bootstrapFile)); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile(filepath.Join(data, "meta.properties"))
	if err != nil {
		t.Fatal(err)
	}
	properties := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found {
			properties[name] = value
		}
	}
	for _, id := range []string{"cluster.id", "directory.id"} {
		properties[id] = strconv.Itoa(len(properties[id]))
	}
	return properties
}
