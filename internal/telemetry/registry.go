package telemetry

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/IBM/pgxpoolprometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kprom"
)

// Registry is a Prometheus registry that also stores the names of the registered vectors. A vector
// exposes nothing until one of its series exists. So its family would be missing in /metrics until
// the first labels (topic, partition, broker) are known. Server declares such families with HELP
// and TYPE.
type Registry struct {
	*prometheus.Registry

	mu       sync.Mutex
	families map[string]Family
}

// Family is a metric family that may have no samples yet.
type Family struct {
	Name string
	Help string
	Type string // counter, gauge, histogram or summary
}

// NewRegistry returns a registry with the collectors of the Go runtime and of
// the process.
func NewRegistry() *Registry {
	r := &Registry{Registry: prometheus.NewRegistry(), families: make(map[string]Family)}
	r.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return r
}

// Register implements prometheus.Registerer.
func (r *Registry) Register(c prometheus.Collector) error {
	if err := r.Registry.Register(c); err != nil {
		return err
	}
	r.remember(c)
	return nil
}

// MustRegister implements prometheus.Registerer. It panics on an error of Register, because such an
// error is a bug.
func (r *Registry) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

// Declared returns the families of all registered vectors, sorted by name.
func (r *Registry) Declared() []Family {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.families), func(a, b Family) int { return cmp.Compare(a.Name, b.Name) })
}

func (r *Registry) remember(c prometheus.Collector) {
	typ := vectorType(c)
	if typ == "" {
		return
	}
	descs := make(chan *prometheus.Desc, 1) // a vector has exactly one Desc
	c.Describe(descs)
	f := Family{Type: typ}
	// A Desc has its name and help only in its text. A test checks the form of this text.
	if _, err := fmt.Sscanf((<-descs).String(), "Desc{fqName: %q, help: %q", &f.Name, &f.Help); err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.families[f.Name] = f
}

// vectorType returns an empty text for a collector that is not a vector.
func vectorType(c prometheus.Collector) string {
	switch c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec:
		return "histogram"
	case *prometheus.SummaryVec:
		return "summary"
	default:
		return ""
	}
}

// RegisterBuildInfo exposes projector_build_info, which is always 1. Its labels are the version of
// the program, the commit from which it was built (may be empty), and the version of Go.
func RegisterBuildInfo(reg prometheus.Registerer, version, revision string) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "projector_build_info",
		Help:        "Always 1; the labels name the running build.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "goversion": runtime.Version()},
	})
	info.Set(1)
	reg.MustRegister(info)
}

// RegisterHealth exposes projector_ready, which is 1 while /readyz answers 200, else 0. It also
// exposes the number of warnings, because a warning does not change projector_ready.
func RegisterHealth(reg prometheus.Registerer, h *Health) {
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "projector_ready",
		Help: "1 while assigned work flows or is idle (/readyz answers 200), else 0.",
	}, func() float64 {
		if ok, _ := h.Ready(); ok {
			return 1
		}
		return 0
	}))
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "projector_warnings",
		Help: "Warnings of /readyz: problems that a person has to repair although the instance works.",
	}, func() float64 { return float64(len(h.Warnings())) }))
}

// RegisterPool exposes the pgxpool_* families of a pool. A *pgxpool.Pool implements Stater. The
// pool need not be connected, so it can be registered before the database is reachable.
func RegisterPool(reg prometheus.Registerer, pool pgxpoolprometheus.Stater) {
	reg.MustRegister(pgxpoolprometheus.NewCollector(pool, nil))
}

// KafkaHooks exposes the kafka_client_* families of one kgo client. The label client (for example
// "consumer" or "dlq") distinguishes several clients. The families are registered when the client
// is created and removed when it is closed. Two open clients with the same label cause a panic.
func KafkaHooks(reg prometheus.Registerer, client string) kgo.Opt {
	return kgo.WithHooks(kprom.NewMetrics("kafka_client",
		kprom.Registerer(reg),
		kprom.WithStaticLabel(prometheus.Labels{"client": client}),
		kprom.FetchAndProduceDetail(kprom.ByNode, kprom.ByTopic, kprom.Batches, kprom.Records,
			kprom.UncompressedBytes, kprom.CompressedBytes, kprom.ConsistentNaming),
		// These two histograms show whether brokers slow down a consumer, by long response times or
		// by throttling.
		kprom.Histograms(kprom.RequestDurationE2E, kprom.RequestThrottled),
	))
}

// metricsHandler serves the text and protobuf formats. In the text format, it appends HELP and TYPE
// lines for families without samples. So the families of all vectors are declared from the start.
// The usual encoder refuses families without samples, but Prometheus's parser accepts them. If a
// collector fails, only its own samples are missing, and there is a log line.
func metricsHandler(reg *Registry, log *slog.Logger) http.Handler {
	opts := promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		// The lines that are appended below must not follow a gzip stream.
		DisableCompression: true,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The declared families must be compared with this scrape and not with a later one, because
		// a family may get its first sample in between.
		var gathered []*dto.MetricFamily
		once := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
			mfs, err := reg.Gather()
			gathered = mfs
			return mfs, err
		})
		promhttp.HandlerFor(once, opts).ServeHTTP(w, r)

		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") && len(gathered) > 0 {
			writeDeclarations(w, missing(reg.Declared(), gathered, r.URL.Query()["name[]"]))
		}
	})
}

// missing returns the declared families that were not gathered. The parameter wanted is promhttp's
// filter by name. If it is empty, all names are wanted.
func missing(declared []Family, gathered []*dto.MetricFamily, wanted []string) []Family {
	seen := make(map[string]bool, len(gathered))
	for _, mf := range gathered {
		seen[mf.GetName()] = true
	}
	return slices.DeleteFunc(declared, func(f Family) bool {
		return seen[f.Name] || len(wanted) > 0 && !slices.Contains(wanted, f.Name)
	})
}

var helpEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`)

func writeDeclarations(w io.Writer, families []Family) {
	buf := bufio.NewWriter(w)
	for _, f := range families {
		buf.WriteString("# HELP " + f.Name + " " + helpEscaper.Replace(f.Help) + "\n")
		buf.WriteString("# TYPE " + f.Name + " " + f.Type + "\n")
	}
	_ = buf.Flush() // an error means that the client has disconnected
}
