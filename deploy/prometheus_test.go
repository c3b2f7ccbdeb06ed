//go:build deploy

package deploy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"projector/e2e/wait"
)

// prometheus is a real Prometheus that runs for one test.
type prometheus struct {
	t       *testing.T
	address string
}

// startPrometheus starts a Prometheus that scrapes target five times a second. It evaluates the
// alerts of alerts.yaml with the shorter durations of hasty.
func startPrometheus(t *testing.T, target string) *prometheus {
	t.Helper()
	folder := t.TempDir()
	write(t, filepath.Join(folder, "alerts.yaml"), hasty(read(t, alertsFile)))
	return launchPrometheus(t, folder, fmt.Sprintf(`
global: {scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms}
rule_files: [alerts.yaml]
scrape_configs:
  - job_name: projector
    static_configs: [{targets: [%q]}]
`, target), "projector_ready")
}

// launchPrometheus runs Prometheus with a configuration and waits until the query has a result. Its
// database is the subfolder data.
func launchPrometheus(t *testing.T, folder, config, query string) *prometheus {
	t.Helper()
	write(t, filepath.Join(folder, "prometheus.yaml"), config)
	p := &prometheus{t: t, address: freeAddress(t)}
	var log bytes.Buffer
	cmd := exec.CommandContext(context.Background(), "prometheus",
		"--config.file="+filepath.Join(folder, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--storage.tsdb.retention.time=100y", "--web.listen-address="+p.address, "--log.level=warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v (Debian's package prometheus has it)", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("prometheus: %v\n%s", err, log.String())
		}
	})
	p.sees(query)
	return p
}

// For a test, hasty shortens durations in minutes and time ranges of five minutes. The rest of each
// alert does not change.
func hasty(alerts string) string {
	alerts = regexp.MustCompile(`for: \d+m`).ReplaceAllString(alerts, "for: 1s")
	return regexp.MustCompile(`\[5m\]`).ReplaceAllString(alerts, "[3s]")
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// get queries the HTTP API and decodes the value of "data" into answer.
func (p *prometheus) get(path string, answer any) error {
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, "http://"+p.address+"/api/v1/"+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	var envelope struct {
		Status string
		Data   json.RawMessage
	}
	if err := json.NewDecoder(response.Body).Decode(&envelope); err != nil {
		return err
	}
	if envelope.Status != "success" {
		return fmt.Errorf("%s: %s", path, envelope.Status)
	}
	return json.Unmarshal(envelope.Data, answer)
}

// The method firing returns the names of the firing alerts.
func (p *prometheus) firing() ([]string, error) {
	var found struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}
	err := p.get("alerts", &found)
	var names []string
	for _, alert := range found.Alerts {
		if name := alert.Labels["alertname"]; alert.State == "firing" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, err
}

// expect waits until exactly these alerts fire.
func (p *prometheus) expect(when string, want ...string) {
	p.t.Helper()
	slices.Sort(want)
	p.await(when, func() string {
		got, err := p.firing()
		if err != nil || !slices.Equal(got, want) {
			return fmt.Sprintf("firing: %v, want %v (%v)", got, want, err)
		}
		return ""
	})
}

// The method sees waits until the result of a query is not empty.
func (p *prometheus) sees(query string) {
	p.t.Helper()
	p.await(query, func() string {
		var found struct{ Result []any }
		if err := p.get("query?query="+url.QueryEscape(query), &found); err != nil || len(found.Result) == 0 {
			return fmt.Sprintf("no answer (%v)", err)
		}
		return ""
	})
}

// await polls until check returns "".
func (p *prometheus) await(what string, check func() string) {
	p.t.Helper()
	wait.Until(p.t, 3*time.Minute, what, check)
}
