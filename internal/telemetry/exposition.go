package telemetry

import (
	"bufio"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// declarer is a gatherer that knows families which may have no samples yet.
type declarer interface {
	Declared() []Family
}

// metricsHandler serves the text and protobuf formats. In text, families
// without samples follow as HELP and TYPE lines (the encoder refuses them, the
// parser of Prometheus takes them), so that all are declared from the start.
// One failing collector costs its own samples and a log line, not the scrape.
func metricsHandler(g prometheus.Gatherer, log *slog.Logger) http.Handler {
	opts := promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
		ErrorLog:      slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		// The lines appended below must not follow the end of a gzip stream.
		DisableCompression: true,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// What is declared must be judged against this very scrape: a family
		// may have had its first sample a moment later.
		var gathered []*dto.MetricFamily
		once := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
			mfs, err := g.Gather()
			gathered = mfs
			return mfs, err
		})
		promhttp.HandlerFor(once, opts).ServeHTTP(w, r)

		d, ok := g.(declarer)
		isText := strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain")
		if !ok || !isText || len(gathered) == 0 {
			return
		}
		writeDeclarations(w, missing(d.Declared(), gathered, r.URL.Query()["name[]"]))
	})
}

// missing returns the declared families that are not among the gathered ones;
// wanted is promhttp's own filter by name, empty for all.
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
	_ = buf.Flush() // the scraper is gone: nobody is left to be told
}
