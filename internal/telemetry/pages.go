package telemetry

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed page
var pageFiles embed.FS

// uPlotVersion is that of the npm package uplot in page/assets, unaltered.
const uPlotVersion = "1.6.32"

// page is parsed once; a mistake in it fails every test and the first start.
var page = template.Must(template.New("status.html").Funcs(template.FuncMap{
	"count":   formatCount,
	"seconds": formatSeconds,
	"age":     formatAge,
	"utc":     formatTime,
	"rate":    formatRate,
	"clock":   formatClock,
	"classes": classCounts,
	"uplot":   func() string { return uPlotVersion },
	"labelled": func(label string, list []PartitionStatus) labelled {
		return labelled{label, list}
	},
}).ParseFS(pageFiles, "page/status.html"))

// Page is what the status page is made of beside health. What is nil is not shown.
type Page struct {
	Status      StatusFunc
	History     *History
	DeadLetters *LastDeadLetters
}

func (p Page) withDefaults() Page {
	if p.Status == nil {
		p.Status = func() Status { return Status{} }
	}
	if p.History == nil {
		p.History = NewHistory(nil)
	}
	if p.DeadLetters == nil {
		p.DeadLetters = NewLastDeadLetters()
	}
	return p
}

// pages are the handlers for probes and for people.
type pages struct {
	Page
	health *Health
	log    *slog.Logger
}

// routes needs no method checks of its own: a GET pattern also takes HEAD and
// answers 405 to anything else.
func (p *pages) routes(metrics http.Handler) http.Handler {
	assets, err := fs.Sub(pageFiles, "page/assets")
	if err != nil {
		panic(err) // a constant path
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", p.livez)
	mux.HandleFunc("GET /readyz", p.readyz)
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /status.json", p.statusJSON)
	mux.HandleFunc("GET /history.json", p.historyJSON)
	mux.HandleFunc("GET /{$}", p.statusPage)
	for _, name := range []string{"style.css", "status.js", "icon.svg"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, assets, name)
		})
	}
	for _, name := range []string{"uPlot.iife.min.js", "uPlot.min.css", "LICENSE"} {
		path := "uplot/" + uPlotVersion + "/" + name
		mux.HandleFunc("GET /"+path, func(w http.ResponseWriter, r *http.Request) {
			// The version is in the path, so what stands there never changes.
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			http.ServeFileFS(w, r, assets, path)
		})
	}
	return mux
}

func (p *pages) livez(w http.ResponseWriter, _ *http.Request) {
	if alive, silence := p.health.Alive(); !alive {
		p.text(w, http.StatusServiceUnavailable, fmt.Sprintf("the poll loop has not moved for %s\n", silence.Round(time.Second)))
		return
	}
	p.text(w, http.StatusOK, "ok\n")
}

func (p *pages) readyz(w http.ResponseWriter, r *http.Request) {
	ready := readinessOf(p.health)
	code := http.StatusOK
	if !ready.Ready {
		code = http.StatusServiceUnavailable
	}
	if wantsJSON(r) {
		p.json(w, code, ready)
		return
	}
	p.text(w, code, readinessText(ready))
}

func readinessText(r readiness) string {
	if r.Ready {
		return "ready\n"
	}
	var b strings.Builder
	for _, reason := range shareReasons(r.Reasons) {
		fmt.Fprintf(&b, "%s: %s (since %s)\n", reason.Condition, reason.Reason, formatTime(reason.Since))
	}
	return b.String()
}

func wantsJSON(r *http.Request) bool {
	return r.URL.Query().Get("format") == "json" || strings.Contains(r.Header.Get("Accept"), "application/json")
}

func (p *pages) document() statusDocument {
	doc := statusDocument{
		readiness: readinessOf(p.health), Status: p.Status(),
		RecordsPerSecond: p.History.latest(), DeadLetters: p.DeadLetters.status(),
	}
	doc.LagRecords, doc.LagSeconds = doc.Lag()
	doc.MarginSeconds = doc.Margin()
	if doc.Partitions == nil {
		doc.Partitions = []PartitionStatus{} // an empty list, not null
	}
	return doc
}

func (p *pages) statusJSON(w http.ResponseWriter, _ *http.Request) {
	p.json(w, http.StatusOK, p.document())
}

// historyJSON answers what the charts draw; with ?after=T only what came after T.
func (p *pages) historyJSON(w http.ResponseWriter, r *http.Request) {
	after := int64(0)
	if text := r.URL.Query().Get("after"); text != "" {
		var err error
		if after, err = strconv.ParseInt(text, 10, 64); err != nil {
			p.text(w, http.StatusBadRequest, "after: not a Unix time in milliseconds\n")
			return
		}
	}
	body, err := json.Marshal(p.History.since(after))
	if err != nil {
		p.log.Error("cannot encode the history", Err(err))
		http.Error(w, "cannot encode the history", http.StatusInternalServerError)
		return
	}
	p.write(w, http.StatusOK, "application/json", append(body, '\n'))
}

func (p *pages) statusPage(w http.ResponseWriter, _ *http.Request) {
	var body bytes.Buffer // rendered whole, so that a failure is no half page
	if err := page.Execute(&body, viewOf(p.document())); err != nil {
		p.log.Error("cannot render the status page", Err(err))
		http.Error(w, "cannot render the status page", http.StatusInternalServerError)
		return
	}
	p.write(w, http.StatusOK, "text/html; charset=utf-8", body.Bytes())
}

func (p *pages) text(w http.ResponseWriter, code int, body string) {
	p.write(w, code, "text/plain; charset=utf-8", []byte(body))
}

func (p *pages) json(w http.ResponseWriter, code int, doc any) {
	body, err := json.MarshalIndent(doc, "", "  ")
	if err != nil { // only a NaN or an infinite number can do this
		p.log.Error("cannot encode the status", Err(err))
		http.Error(w, "cannot encode the status", http.StatusInternalServerError)
		return
	}
	p.write(w, code, "application/json", append(body, '\n'))
}

func (p *pages) write(w http.ResponseWriter, code int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	if _, err := w.Write(body); err != nil {
		p.log.Debug("the HTTP client went away", Err(err))
	}
}

const (
	// partitionsAtOnce is how many partitions one table shows without more ado.
	partitionsAtOnce = 32
	// partitionsFirst is how many of more than that are shown before the rest.
	partitionsFirst = 12
)

// view is what the page shows beside the document.
type view struct {
	statusDocument
	Shared []Reason          // why it is not ready, one for all partitions with the same reason
	States []stateCount      // the states there are, the most urgent first
	First  []PartitionStatus // of very many partitions, those to look at first
}

// stateCount is how many partitions are in a state.
type stateCount struct {
	State State
	Count int
}

// labelled are partitions under a heading of the page, by its id.
type labelled struct {
	Label      string
	Partitions []PartitionStatus
}

// classCount is how many dead letters are of a class.
type classCount struct {
	Class string
	Count int64
}

// classCounts are sorted, the most frequent first.
func classCounts(byClass map[string]int64) []classCount {
	counts := make([]classCount, 0, len(byClass))
	for class, n := range byClass {
		counts = append(counts, classCount{class, n})
	}
	slices.SortFunc(counts, func(a, b classCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Class, b.Class))
	})
	return counts
}

func viewOf(doc statusDocument) view {
	v := view{statusDocument: doc, Shared: shareReasons(doc.Reasons)}
	counts := map[State]int{}
	for i := range doc.Partitions {
		counts[doc.Partitions[i].State]++
	}
	for state, n := range counts {
		v.States = append(v.States, stateCount{state, n})
	}
	slices.SortFunc(v.States, func(a, b stateCount) int {
		return cmp.Or(urgency(a.State)-urgency(b.State), cmp.Compare(a.State, b.State))
	})
	if len(doc.Partitions) > partitionsAtOnce {
		v.First = foremost(doc.Partitions)
	}
	return v
}

// foremost are the partitions in trouble and, behind them, those furthest behind.
func foremost(all []PartitionStatus) []PartitionStatus {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b PartitionStatus) int {
		return cmp.Or(
			min(urgency(a.State), urgency(StateFlowing))-min(urgency(b.State), urgency(StateFlowing)),
			cmp.Compare(value(b.LagSeconds), value(a.LagSeconds)),
			cmp.Compare(value(b.LagRecords), value(a.LagRecords)),
		)
	})
	return sorted[:min(partitionsFirst, len(sorted))]
}

// urgency orders states: the lower, the sooner somebody should look. An unknown
// state comes first.
func urgency(s State) int {
	return slices.Index([]State{
		StateStopped, StateBreakerOpen, StateRetrying, StateStarting, StatePaused, StateFlowing, StateThrottled, StateIdle,
	}, s)
}

func value[N int64 | float64](p *N) N {
	if p == nil {
		return -1
	}
	return *p
}
