package deploy_test

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	alertsFile     = "monitoring/alerts.yaml"
	prometheusRule = "monitoring/prometheusrule.yaml"
)

var update = flag.Bool("update", false, "write "+prometheusRule+" instead of comparing it")

// wrapping is the text around the rules that makes them an object for the Prometheus operator.
const wrapping = `# Made from alerts.yaml by make alerts; a test compares the two.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: projector
  labels:
    app.kubernetes.io/name: projector
spec:
`

// TestPrometheusRuleIsTheAlertsFile checks that the object for the Prometheus operator has the
// rules of alerts.yaml.
func TestPrometheusRuleIsTheAlertsFile(t *testing.T) {
	want := wrapping
	for line := range strings.Lines(read(t, alertsFile)) {
		if strings.HasPrefix(line, "#") {
			continue // the comments at the start describe alerts.yaml itself
		}
		if line != "\n" {
			line = "  " + line
		}
		want += line
	}
	if *update {
		if err := os.WriteFile(prometheusRule, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, prometheusRule) != want {
		t.Errorf("%s is not what %s says: run make alerts", prometheusRule, alertsFile)
	}
}

// rule is the part of an alert that the tests check.
type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal([]byte(read(t, alertsFile)), &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) < 8 {
		t.Fatalf("%d alerts", len(all))
	}
	return all
}

// TestEachAlertHasARunbook checks that each alert has a section in the runbook. The first line of a
// section must say whether the alert pages a person. The rest must say what the alert means and
// which commands to run.
func TestEachAlertHasARunbook(t *testing.T) {
	runbook := sections(read(t, "../docs/runbook.md"))
	for _, r := range rules(t) {
		anchor, found := strings.CutPrefix(r.Annotations["runbook_url"], "docs/runbook.md#")
		if !found {
			t.Errorf("%s has no runbook_url into docs/runbook.md", r.Alert)
			continue
		}
		section, found := runbook[anchor]
		switch {
		case !strings.EqualFold(anchor, r.Alert):
			t.Errorf("%s leads to #%s", r.Alert, anchor)
		case !found:
			t.Errorf("docs/runbook.md has no section #%s", anchor)
		case !strings.Contains(section, "Means:") || !strings.Contains(section, "```"):
			t.Errorf("docs/runbook.md#%s does not say what it means and what to type", anchor)
		case strings.HasPrefix(strings.TrimSpace(section), "**Pages you") != (r.Labels["severity"] == "critical"),
			!regexp.MustCompile(`^\s*\*\*(Pages you|Can wait)`).MatchString(section):
			t.Errorf("docs/runbook.md#%s does not begin with whether an alert of severity %s pages", anchor, r.Labels["severity"])
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s has no summary or description", r.Alert)
		}
		if !regexp.MustCompile(`^(critical|warning|info)$`).MatchString(r.Labels["severity"]) {
			t.Errorf("%s has severity %q", r.Alert, r.Labels["severity"])
		}
	}
}

// TestEachAlertIsWithItsMetrics checks the table of docs/observability.md. The row of a metric must
// name the alerts whose expressions read this metric, and no other alert.
func TestEachAlertIsWithItsMetrics(t *testing.T) {
	want := map[string][]string{}
	for _, r := range rules(t) {
		for _, metric := range regexp.MustCompile(`projector_[a-z_]+`).FindAllString(r.Expr, -1) {
			if !slices.Contains(want[metric], r.Alert) {
				want[metric] = append(want[metric], r.Alert)
			}
		}
	}
	rows := 0
	for _, row := range regexp.MustCompile(`(?m)^\| (`+"`projector_[^|]*"+`)\|[^|]*\|[^|]*\| ?([^|]*)\|$`).FindAllStringSubmatch(read(t, "../docs/observability.md"), -1) {
		rows++
		for _, metric := range regexp.MustCompile(`projector_[a-z_]+`).FindAllString(row[1], 1) {
			got := strings.FieldsFunc(row[2], func(r rune) bool { return r == ',' || r == ' ' })
			slices.Sort(got)
			slices.Sort(want[metric])
			if !slices.Equal(got, want[metric]) {
				t.Errorf("%s has the alerts %v on the page, and is read by %v", metric, got, want[metric])
			}
		}
	}
	if rows < 25 {
		t.Errorf("only %d rows", rows)
	}
}

// TestNamespacesAreSeparate checks the alerts and the panels. Two namespaces may have a projection of the
// same name, so its lag or its gap in one of them must not hide those in the other.
func TestNamespacesAreSeparate(t *testing.T) {
	var dashboard struct {
		Annotations struct{ List []struct{ Expr string } }
		Panels      []struct {
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "monitoring/dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	grouped := regexp.MustCompile(`(max|min|on) (by )?\([^)]*\)|by \([^)]*projection[^)]*\)`)
	check := func(where, expr string) (groups []string) {
		groups = grouped.FindAllString(expr, -1)
		for _, group := range groups {
			if !strings.Contains(group, "namespace") {
				t.Errorf("%s: %s does not have the namespace: %s", where, group, expr)
			}
		}
		return groups
	}
	for _, r := range rules(t) {
		check(r.Alert, r.Expr)
	}
	for _, a := range dashboard.Annotations.List {
		if a.Expr != "" && !strings.Contains(a.Expr, "$namespace") {
			t.Errorf("an annotation does not have the namespace: %s", a.Expr)
		}
	}
	checked := 0
	for _, p := range dashboard.Panels {
		for _, q := range p.Targets {
			groups := check(p.Title, q.Expr)
			checked += len(groups)
			if q.LegendFormat != "" && len(groups) > 0 && strings.Contains(q.Expr, "by (") && !strings.Contains(q.LegendFormat, "{{namespace}}") {
				t.Errorf("%s: the legend %q does not have the namespace", p.Title, q.LegendFormat)
			}
		}
	}
	if checked < 25 {
		t.Errorf("only %d groups of the dashboard were checked", checked)
	}
}

// sections returns the texts below the headings of a page, by anchor.
func sections(page string) map[string]string {
	all := map[string]string{}
	anchor := ""
	for line := range strings.Lines(page) {
		if heading := regexp.MustCompile(`^#+ (.+)\n$`).FindStringSubmatch(line); heading != nil {
			anchor = strings.ReplaceAll(regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-")
			all[anchor] = ""
			continue
		}
		all[anchor] += line
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
