package process

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.yaml.in/yaml/v3"

	"projector/internal/cli/flags"
	"projector/internal/telemetry"
)

// TestWatchedMetricsAreExported shows that each metric in an alert or a panel is exported. A
// misspelt name would never show a value.
func TestWatchedMetricsAreExported(t *testing.T) {
	exported := exportedMetrics(t)
	watched := map[string][]string{"alerts.yaml": alertExpressions(t), "dashboard.json": panelExpressions(t)}
	for file, expressions := range watched {
		if len(expressions) < 10 {
			t.Errorf("%s: %d expressions", file, len(expressions))
		}
		for _, expression := range expressions {
			names := metricNames(expression)
			if len(names) == 0 {
				t.Errorf("%s: no metric in %q", file, expression)
			}
			for _, name := range names {
				if !exported[name] {
					t.Errorf("%s: the process exports no %s", file, name)
				}
			}
		}
	}
}

func TestMetricNamesInExpressions(t *testing.T) {
	for expression, want := range map[string]string{
		`projector_ready == 0`: "projector_ready",
		`sum by (topic, class) (increase(a_total{class!~"b_total|c", x="$y"}[$__rate_interval])) > 0 or d offset 5m`: "a_total d",
		`histogram_quantile(0.99, sum by (le) (rate(a_bucket[5m])))`:                                                 "a_bucket",
		`time() - max without (instance) (a:b) and on (c) group_left (d) e`:                                          "a:b e",
		`label_values(a{b="c"}, d)`:                       "a",
		`deriv(sum(a)[15m:1m]) > bool 0 unless absent(b)`: "a b",
	} {
		if got := strings.Join(metricNames(expression), " "); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}

var (
	notMetrics = regexp.MustCompile(`"[^"]*"|\{[^}]*\}|\[[^\]]*\]|\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)|\boffset\s+\w+|,\s*\w+\)$`)
	identifier = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*\s*\(?`)
	keywords   = []string{"and", "or", "unless", "bool", "sum", "min", "max", "avg", "count", "topk"}
)

// metricNames returns the metrics that a PromQL expression reads.
func metricNames(expression string) []string {
	var names []string
	for _, name := range identifier.FindAllString(notMetrics.ReplaceAllString(expression, " "), -1) {
		if name = strings.TrimSpace(name); !strings.HasSuffix(name, "(") && !slices.Contains(keywords, name) {
			names = append(names, name)
		}
	}
	return names
}

// exportedMetrics returns the names of the samples of a new process with the defaults of `run`.
func exportedMetrics(t *testing.T) map[string]bool {
	t.Helper()
	var c Flags
	parser, err := kong.New(&c, kong.Bind(flags.BuildInfo{}), kong.DefaultEnvars("PROJECTOR"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(nil); err != nil {
		t.Fatal(err)
	}
	p, err := c.Build(t.Context(), slog.New(slog.DiscardHandler), flags.BuildInfo{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	member, err := kgo.NewClient(telemetry.KafkaHooks(p.registry, "consumer")) // a process makes this client when it begins to consume
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	families, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	exported := map[string]bool{}
	add := func(name, kind string) {
		exported[name] = true
		if kind == "histogram" || kind == "summary" {
			exported[name+"_bucket"], exported[name+"_sum"], exported[name+"_count"] = true, true, true
		}
	}
	for _, family := range families {
		add(family.GetName(), strings.ToLower(family.GetType().String()))
	}
	for _, family := range p.registry.Declared() {
		add(family.Name, family.Type)
	}
	return exported
}

func alertExpressions(t *testing.T) []string {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []struct{ Expr string } }
	}
	if err := yaml.Unmarshal(monitoringFile(t, "alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			all = append(all, rule.Expr)
		}
	}
	return all
}

// panelExpressions returns the expressions of the panels and of the variables of the dashboard.
func panelExpressions(t *testing.T) []string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct {
				Type       string
				Definition string
			}
		}
	}
	if err := json.Unmarshal(monitoringFile(t, "dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	for _, variable := range dashboard.Templating.List {
		if variable.Type == "query" {
			all = append(all, variable.Definition)
		}
	}
	return all
}

func monitoringFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "monitoring", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
