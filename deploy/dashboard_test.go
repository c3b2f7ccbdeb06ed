//go:build deploy

package deploy_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// panel is a panel of the dashboard. A panel of the type "row" is a heading.
type panel struct {
	Title       string
	Type        string
	Description string
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct {
		Defaults struct {
			Unit       string
			Thresholds struct {
				Steps []struct {
					Color string
					Value *float64 // nil for the first step, which has no lower bound
				}
			}
		}
		Overrides []struct {
			Matcher    struct{ Options string } // the RefID of a target
			Properties []struct{ ID, Value string }
		}
	}
	Targets []target
}

// target is one query of a panel.
type target struct{ RefID, Expr, LegendFormat string }

// dashboard reads the panels of dashboard.json. In the queries of the panels it replaces
// $__rate_interval with rateInterval, and each other variable of Grafana with a pattern that
// matches everything.
func dashboard(t *testing.T, rateInterval string) []panel {
	t.Helper()
	grafana := strings.NewReplacer("$__rate_interval", rateInterval, "$namespace", ".*", "$projection", ".*", "$instance", ".*")
	var file struct{ Panels []panel }
	if err := json.Unmarshal([]byte(read(t, "monitoring/dashboard.json")), &file); err != nil {
		t.Fatal(err)
	}
	queries := 0
	for i := range file.Panels {
		for k := range file.Panels[i].Targets {
			q := &file.Panels[i].Targets[k]
			q.Expr = grafana.Replace(q.Expr)
			queries++
		}
	}
	if queries < 30 {
		t.Fatalf("%d queries", queries)
	}
	return file.Panels
}

// emptyWhenWell has the titles of the panels in which panelsShow requires no data.
var emptyWhenWell = map[string]bool{
	"Errors of Kafka connections":                   true, // its counters start with the first error
	"Time until retention removes an unread record": true, // there is no unread record
}

// panelsShow requires data in every panel that is not in emptyWhenWell, because a panel with wrong
// labels is empty without an error.
func (p *prometheus) panelsShow() {
	p.t.Helper()
	for _, panel := range dashboard(p.t, "30s") {
		for _, q := range panel.Targets {
			var found struct{ Result []any }
			err := p.get("query?query="+url.QueryEscape(q.Expr), &found)
			if err != nil || len(found.Result) == 0 && !emptyWhenWell[panel.Title] {
				p.t.Errorf("panel %q is empty (%v): %s", panel.Title, err, q.Expr)
			}
		}
	}
}

// line is what a panel draws for one series. The keys of values are Unix times.
type line struct {
	query  string // the target's RefID
	legend string
	values map[int64]float64
}

// labelsAreAsScripted compares the labels in testdata/night.txt with the labels of a real
// projector. It compares only the series that this projector exports.
func (p *prometheus) labelsAreAsScripted() {
	p.t.Helper()
	compared := 0
	for _, s := range night(p.t) {
		family, _, _ := strings.Cut(s.name, "{")
		var found struct {
			Result []struct{ Metric map[string]string }
		}
		if err := p.get("query?query="+url.QueryEscape("last_over_time("+family+"[1m])"), &found); err != nil {
			p.t.Fatal(err)
		}
		if len(found.Result) == 0 {
			continue
		}
		compared++
		scripted := map[string]bool{"job": true} // testdata/night.txt has all other labels that Prometheus adds
		for _, label := range labelName.FindAllStringSubmatch(s.name, -1) {
			scripted[label[1]] = true
		}
		exported := map[string]bool{"namespace": true}
		for label := range found.Result[0].Metric {
			exported[label] = true
		}
		delete(exported, "__name__")
		delete(exported, "revision") // label of projector_build_info that no panel uses
		if !maps.Equal(scripted, exported) {
			p.t.Errorf("%s has the labels %v, and %v in testdata/night.txt", family, slices.Sorted(maps.Keys(exported)), slices.Sorted(maps.Keys(scripted)))
		}
	}
	if compared < 50 {
		p.t.Errorf("only %d series were compared", compared)
	}
}

var labelName = regexp.MustCompile(`(\w+)="`)

// lines runs a query over the time range of testdata/night.txt.
func (p *prometheus) lines(q target) ([]line, error) {
	var found struct {
		Result []struct {
			Metric map[string]string
			Values [][2]any // Unix time, value as text
		}
	}
	err := p.get(fmt.Sprintf("query_range?query=%s&start=%d&end=%d&step=%d", url.QueryEscape(q.Expr),
		nightStart.Unix(), nightEnd.Unix(), int(nightStep/time.Second)), &found)
	var all []line
	for _, series := range found.Result {
		l := line{query: q.RefID, legend: legend(q.LegendFormat, series.Metric), values: map[int64]float64{}}
		for _, sample := range series.Values {
			at, _ := sample[0].(float64)
			text, _ := sample[1].(string)
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, err
			}
			l.values[int64(at)] = value
		}
		all = append(all, l)
	}
	return all, err
}

var legendLabel = regexp.MustCompile(`\{\{(\w+)\}\}`)

// legend replaces the labels in a legend, as Grafana does.
func legend(format string, labels map[string]string) string {
	return legendLabel.ReplaceAllStringFunc(format, func(name string) string { return labels[strings.Trim(name, "{}")] })
}
