package telemetry

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
)

//go:embed page
var pageFiles embed.FS

// uPlotVersion is the version of the npm package uplot in page/assets. The files are unaltered.
const uPlotVersion = "1.6.32"

// The templates are parsed when the program starts. A mistake in a template makes every test of the
// package fail.
var page = template.Must(template.New("status.html").Funcs(template.FuncMap{
	"count":    formatCount,
	"seconds":  formatSeconds,
	"age":      formatAge,
	"utc":      formatTime,
	"rate":     formatRate,
	"clock":    formatClock,
	"classes":  classCounts,
	"causes":   causesFirst,
	"uplot":    func() string { return uPlotVersion },
	"labelled": func(label string, list any) labelled { return labelled{label, list} },
}).ParseFS(pageFiles, "page/status.html", "page/runbook.html"))

// Page has the data that the status page shows in addition to the health.
type Page struct {
	Status           StatusFunc
	History          *History
	DeadLetters      *LastDeadLetters
	Runbook, Repairs string // documentation pages in Markdown
}

type pages struct {
	Page
	health *Health
	log    *slog.Logger
}

// routes returns the handler for all paths. The handlers do not check the method, because a GET
// pattern also accepts HEAD, and answers 405 to all other methods.
func (p *pages) routes(metrics http.Handler) http.Handler {
	assets, err := fs.Sub(pageFiles, "page/assets")
	if err != nil {
		panic(err) // impossible, because the path is constant
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", p.livez)
	mux.HandleFunc("GET /readyz", p.readyz)
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /status.json", p.statusJSON)
	mux.HandleFunc("GET /history.json", p.historyJSON)
	mux.HandleFunc("GET /{$}", p.statusPage)
	mux.HandleFunc("GET /runbook", p.documentation(p.Runbook))
	mux.HandleFunc("GET /repairs", p.documentation(p.Repairs))
	for _, name := range []string{"style.css", "status.js", "icon.svg"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, assets, name)
		})
	}
	for _, name := range []string{"uPlot.iife.min.js", "uPlot.min.css", "LICENSE"} {
		path := "uplot/" + uPlotVersion + "/" + name
		mux.HandleFunc("GET /"+path, func(w http.ResponseWriter, r *http.Request) {
			// The version is in the path, so the content of the path never changes.
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
	var b strings.Builder
	if r.Ready {
		b.WriteString("ready\n")
	}
	for _, reason := range shareReasons(r.Reasons) {
		fmt.Fprintf(&b, "%s: %s (since %s)\n", reason.Condition, reason.Reason, formatTime(reason.Since))
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s: %s (since %s)\n", warning.Condition, warning.Reason, formatTime(warning.Since))
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
		doc.Partitions = []PartitionStatus{} // so that JSON has an empty list and not null
	}
	return doc
}

func (p *pages) statusJSON(w http.ResponseWriter, _ *http.Request) {
	p.json(w, http.StatusOK, p.document())
}

// historyJSON returns the data of the charts. With ?after=T it returns only the samples after T.
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
	p.html(w, "status.html", viewOf(p.document()))
}

func (p *pages) html(w http.ResponseWriter, name string, data any) {
	var body bytes.Buffer // rendered first, because after a failure no part of the page may be sent
	if err := page.ExecuteTemplate(&body, name, data); err != nil {
		p.log.Error("cannot render a page", slog.String("page", name), Err(err))
		http.Error(w, "cannot render "+name, http.StatusInternalServerError)
		return
	}
	p.write(w, http.StatusOK, "text/html; charset=utf-8", body.Bytes())
}

func (p *pages) text(w http.ResponseWriter, code int, body string) {
	p.write(w, code, "text/plain; charset=utf-8", []byte(body))
}

func (p *pages) json(w http.ResponseWriter, code int, doc any) {
	body, err := json.MarshalIndent(doc, "", "  ")
	if err != nil { // only a NaN or an infinite number causes this
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
