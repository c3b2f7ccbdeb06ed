package telemetry

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestRegistryRemembersVectorsWithNameHelpAndType(t *testing.T) {
	reg := NewRegistry()
	opts := func(name string) prometheus.Opts {
		return prometheus.Opts{Name: name, Help: `a "quoted" \ help` + "\nin two lines", ConstLabels: prometheus.Labels{"a": "b"}}
	}
	labels := []string{"x"}
	reg.MustRegister(
		prometheus.NewCounterVec(prometheus.CounterOpts(opts("a_total")), labels),
		prometheus.NewGaugeVec(prometheus.GaugeOpts(opts("b")), labels),
		prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "c", Help: "plain"}, labels),
		prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: "d", Help: ""}, labels),
		prometheus.NewGauge(prometheus.GaugeOpts(opts("exposes_itself"))),
	)
	help := opts("").Help
	want := []Family{{"a_total", help, "counter"}, {"b", help, "gauge"}, {"c", "plain", "histogram"}, {"d", "", "summary"}}
	if got := reg.Declared(); !slices.Equal(got, want) {
		t.Errorf("declared %+v, want %+v", got, want)
	}
}

func TestRegisteringTwiceIsAnError(t *testing.T) {
	reg := NewRegistry()
	NewMetrics(reg, "p", topic)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	NewMetrics(reg, "p", topic)
}

func TestPoolIsExposedBeforeItHasConnected(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	reg := NewRegistry()
	RegisterPool(reg, pool)
	if gather(t, reg)["pgxpool_max_conns"] == nil {
		t.Error("pgxpool_max_conns is missing")
	}
}

// TestKafkaClientsAreExposedByName shows that two clients share the families. A closed client
// removes only its own series, and can be created again.
func TestKafkaClientsAreExposedByName(t *testing.T) {
	reg := NewRegistry()
	open := func(name string) *kgo.Client {
		client, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"), KafkaHooks(reg, name))
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	consumer, dlq := open("consumer"), open("dlq")
	if got := clientsOf(t, reg); !slices.Equal(got, []string{"consumer", "dlq"}) {
		t.Errorf("clients %v", got)
	}
	dlq.Close()
	if got := clientsOf(t, reg); !slices.Equal(got, []string{"consumer"}) {
		t.Errorf("clients after closing one %v", got)
	}
	open("dlq").Close()
	consumer.Close()

	if !slices.ContainsFunc(reg.Declared(), func(f Family) bool { return f.Name == "kafka_client_connects_total" }) {
		t.Error("kafka_client_connects_total is not declared")
	}
}

func clientsOf(t *testing.T, reg *Registry) []string {
	t.Helper()
	var names []string
	for _, series := range gather(t, reg)["kafka_client_buffered_fetch_bytes"].GetMetric() {
		for _, label := range series.GetLabel() {
			if label.GetName() == "client" {
				names = append(names, label.GetValue())
			}
		}
	}
	return names
}

func TestReadyGaugeFollowsHealth(t *testing.T) {
	reg := NewRegistry()
	h := NewHealth()
	RegisterHealth(reg, h)
	gauge := func(name string) float64 { return gather(t, reg)[name].GetMetric()[0].GetGauge().GetValue() }
	value := func() float64 { return gauge("projector_ready") }
	if value() != 0 {
		t.Error("ready before the start")
	}
	h.Started()
	if value() != 1 {
		t.Error("not ready after the start")
	}
	h.Fail("database", "gone")
	if value() != 0 {
		t.Error("ready with a failed condition")
	}
	h.OK("database")
	if n := gauge("projector_warnings"); n != 0 {
		t.Errorf("%v warnings, want none", n)
	}
	h.Warn("group", "writes to another database")
	h.Warn("topic", "is compacted")
	if n := gauge("projector_warnings"); n != 2 || value() != 1 {
		t.Errorf("%v warnings, want 2; ready %v", n, value())
	}
}

func TestBuildInfoNamesTheVersion(t *testing.T) {
	reg := NewRegistry()
	RegisterBuildInfo(reg, "v1.2.3", "c851867")
	if got := gather(t, reg)["projector_build_info"].String(); !strings.Contains(got, "v1.2.3") || !strings.Contains(got, "c851867") {
		t.Errorf("build info %s", got)
	}
}
