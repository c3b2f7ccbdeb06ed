//go:build deploy

package deploy_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// query is one of a panel of the dashboard.
type query struct{ panel, expr string }

// queries are those of all panels, with Grafana's variables filled in as for a
// dashboard that shows everything.
func queries(t *testing.T) []query {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "monitoring/dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	grafana := strings.NewReplacer("$__rate_interval", "30s", "$namespace", ".*", "$projection", ".*", "$instance", ".*")
	var all []query
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all = append(all, query{panel.Title, grafana.Replace(target.Expr)})
		}
	}
	if len(all) < 30 {
		t.Fatalf("%d queries", len(all))
	}
	return all
}

// emptyWhenWell are the panels that show nothing while nothing is wrong.
var emptyWhenWell = map[string]bool{
	"Errors of Kafka connections":                 true, // its counters begin with the first error
	"Time until retention takes an unread record": true, // nothing is unread
}

// panelsShow expects every panel to show something: labels that do not meet would
// leave one empty without any error.
func (p *prometheus) panelsShow() {
	p.t.Helper()
	for _, q := range queries(p.t) {
		var found struct{ Result []any }
		err := p.get("query?query="+url.QueryEscape(q.expr), &found)
		if err != nil || len(found.Result) == 0 && !emptyWhenWell[q.panel] {
			p.t.Errorf("panel %q is empty (%v): %s", q.panel, err, q.expr)
		}
	}
}
