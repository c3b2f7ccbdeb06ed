package telemetry

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"projector/projection"
)

// TestEveryFamilyIsDeclaredFromTheStart shows that all metrics are declared before any record is
// consumed or any partition is assigned.
func TestEveryFamilyIsDeclaredFromTheStart(t *testing.T) {
	reg := NewRegistry()
	h := NewHealth()
	NewMetrics(reg, "account_balance", topic)
	RegisterBuildInfo(reg, "v1", "")
	RegisterHealth(reg, h)
	r := get(t, newServer("", reg, h, Page{}, quiet()), "/metrics")
	if r.code != http.StatusOK {
		t.Fatalf("status %d", r.code)
	}
	lines := strings.Split(r.body, "\n")
	for _, f := range contract {
		typ := "# TYPE " + f.name + " " + strings.ToLower(f.typ.String())
		if n := countOf(lines, typ); n != 1 {
			t.Errorf("%q occurs %d times", typ, n)
		}
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "# HELP "+f.name+" ") }) {
			t.Errorf("%s has no HELP", f.name)
		}
	}
}

func countOf(lines []string, want string) int {
	n := 0
	for _, line := range lines {
		if line == want {
			n++
		}
	}
	return n
}

func TestMetricsParseBeforeAndAfterTheFirstSamples(t *testing.T) {
	reg := NewRegistry()
	m := NewMetrics(reg, "account_balance", topic)
	s := newServer("", reg, NewHealth(), Page{}, quiet())
	parse := func() int {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(get(t, s, "/metrics").body))
		if err != nil {
			t.Fatal(err)
		}
		return len(families["projector_records_total"].GetMetric())
	}
	if n := parse(); n != 0 {
		t.Errorf("%d series before an assignment", n)
	}
	m.Assigned(0)
	if n := parse(); n != len(projection.Outcomes()) {
		t.Errorf("%d series after an assignment", n)
	}
}

func TestMetricsFilterByName(t *testing.T) {
	reg := NewRegistry()
	NewMetrics(reg, "p", topic)
	got := get(t, newServer("", reg, NewHealth(), Page{}, quiet()), "/metrics?name[]=projector_lag_records").body
	if strings.Count(got, "# TYPE") != 1 || !strings.Contains(got, "# TYPE projector_lag_records gauge\n") {
		t.Errorf("got %s", got)
	}
}

func TestProtobufScrapeIsLeftAlone(t *testing.T) {
	reg := NewRegistry()
	NewMetrics(reg, "p", topic)
	r := get(t, newServer("", reg, NewHealth(), Page{}, quiet()), "/metrics",
		"Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	decoder := expfmt.NewDecoder(strings.NewReader(r.body), expfmt.ResponseFormat(r.header))
	if n := decodeAll(t, decoder); n < 20 {
		t.Errorf("%d families", n)
	}
}

func decodeAll(t *testing.T, decoder expfmt.Decoder) int {
	t.Helper()
	for n := 0; ; n++ {
		var mf dto.MetricFamily
		err := decoder.Decode(&mf)
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestOneBrokenCollectorDoesNotCostTheScrape(t *testing.T) {
	reg := NewRegistry()
	NewMetrics(reg, "p", topic)
	broken := prometheus.NewDesc("broken", "Fails.", nil, nil)
	reg.MustRegister(brokenCollector{broken})
	r := get(t, newServer("", reg, NewHealth(), Page{}, quiet()), "/metrics")
	got := r.body
	if r.code != http.StatusOK || !strings.Contains(got, "projector_healed_events_total") || !strings.Contains(got, "# TYPE projector_lag_records") {
		t.Errorf("status %d", r.code)
	}
}

type brokenCollector struct{ desc *prometheus.Desc }

func (c brokenCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }
func (c brokenCollector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.NewInvalidMetric(c.desc, io.ErrUnexpectedEOF)
}
