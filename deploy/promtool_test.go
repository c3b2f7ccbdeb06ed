//go:build deploy

package deploy_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestAlertsAsPrometheusReadsThem checks the rules and runs their promtool tests.
func TestAlertsAsPrometheusReadsThem(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", alertsFile}, {"test", "rules", "monitoring/alerts_test.yaml"}} {
		if out, err := run(t.Context(), ".", "promtool", args...); err != nil {
			t.Errorf("%v (Debian's package prometheus has promtool)", err)
		} else if !strings.Contains(out, "SUCCESS") {
			t.Errorf("promtool %v: %s", args, out)
		}
	}
}

// TestEachAlertIsTestedBothWays checks that each alert has a promtool test in which it fires and a
// test in which it does not fire.
func TestEachAlertIsTestedBothWays(t *testing.T) {
	var file struct {
		Tests []struct {
			AlertRuleTest []struct {
				Alertname string
				Expected  []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "monitoring/alerts_test.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]int{}, map[string]int{}
	for _, test := range file.Tests {
		for _, expected := range test.AlertRuleTest {
			if len(expected.Expected) > 0 {
				fires[expected.Alertname]++
			} else {
				silent[expected.Alertname]++
			}
		}
	}
	for _, r := range rules(t) {
		// At least two tests must expect that the alert does not fire. One is the test without
		// errors, and the other is a test for this alert.
		if fires[r.Alert] == 0 || silent[r.Alert] < 2 {
			t.Errorf("%s is tested firing %d times and silent %d times", r.Alert, fires[r.Alert], silent[r.Alert])
		}
	}
}

// TestChangedAlertsFailTheirTests breaks one alert at a time. The tests of this alert must then
// fail.
func TestChangedAlertsFailTheirTests(t *testing.T) {
	alerts := read(t, alertsFile)
	for from, to := range map[string]string{
		"projector_ready == 0":   "projector_ready == 2",
		"projector_warnings > 0": "projector_warnings > 2",
		"[1h]) > 3":              "[1h]) > 2",
		"time() - 1200":          "time() - 3600",
		"          and\n          present_over_time(projector_ready[1h])\n": "",
		"[1d]":                        "[1h]",
		"> 180":                       "> 1800",
		"(projector_retrying) == 1":   "(projector_retrying) == 0",
		"> 3600":                      "> 36000",
		"< 86400":                     "< 8640",
		"> 0.75":                      "> 1.75",
		"[6h:1m]) < 0":                "[6h:1m]) > 0",
		"(projector_breaker_open) ==": "(projector_breaker_open) !=",
		"(projector_paused) == 1":     "(projector_paused) == 2",
		"(projector_paused[5m])":      "(projector_paused[1m])",
		"for: 1h":                     "for: 30m",
		"increase(projector_records_": "rate(projector_lag_",
		"> 10000":                     "> 1000000",
		`class="version_gap"`:         `class="version_gaps"`,
	} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			changed := strings.Replace(alerts, from, to, 1)
			alert := changedAlert(t, alerts, changed)
			folder := t.TempDir()
			write(t, filepath.Join(folder, "alerts.yaml"), changed)
			write(t, filepath.Join(folder, "alerts_test.yaml"), testsOf(t, alert))
			if _, err := run(t.Context(), folder, "promtool", "test", "rules", "alerts_test.yaml"); err == nil {
				t.Errorf("with %q instead of %q all tests of %s pass", to, from, alert)
			}
		})
	}
}

// changedAlert returns the name of the only alert that differs between two rule files.
func changedAlert(t *testing.T, before, after string) string {
	t.Helper()
	was, is := alertsOf(t, before), alertsOf(t, after)
	maps.DeleteFunc(is, func(name string, rule any) bool { return reflect.DeepEqual(rule, was[name]) })
	if len(is) != 1 {
		t.Fatalf("%d alerts are changed, want 1", len(is))
	}
	for name := range is {
		return name
	}
	return ""
}

// alertsOf returns the alerts of a rule file, by name.
func alertsOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []map[string]any }
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	named := map[string]any{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			named[fmt.Sprint(rule["alert"])] = rule
		}
	}
	return named
}

// testsOf returns promtool's file with only the tests of one alert, because each test is slow.
func testsOf(t *testing.T, alert string) string {
	t.Helper()
	var file map[string]any
	if err := yaml.Unmarshal([]byte(read(t, "monitoring/alerts_test.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	file["tests"] = slices.DeleteFunc(file["tests"].([]any), func(test any) bool {
		return !slices.ContainsFunc(test.(map[string]any)["alert_rule_test"].([]any), func(expected any) bool {
			return expected.(map[string]any)["alertname"] == alert
		})
	})
	text, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
