package process

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Get returns status and body of a page. The status is 0 if the page cannot be read.
func (p *Process) Get(path string) (int, string) {
	p.mu.Lock()
	addr := p.addr
	p.mu.Unlock()
	if addr == "" {
		return 0, "does not listen yet"
	}
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get("http://" + addr + path) //nolint:noctx // bounded by the client
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// Answers returns a check for wait.Until. It succeeds when path returns the status and the body
// contains text.
func (p *Process) Answers(path string, status int, text string) func() string {
	return func() string {
		select {
		case <-p.ended:
			return "the program has ended"
		default:
		}
		got, body := p.Get(path)
		if got == status && strings.Contains(body, text) {
			return ""
		}
		return fmt.Sprintf("%s: %d %s", path, got, body)
	}
}

// Logged returns a check for wait.Until. It succeeds when one line contains all of the texts.
func (p *Process) Logged(texts ...string) func() string {
	return func() string {
		for _, line := range p.Lines() {
			found := true
			for _, text := range texts {
				found = found && strings.Contains(line, text)
			}
			if found {
				return ""
			}
		}
		return fmt.Sprintf("no line of the log has %q", texts)
	}
}

var sample = regexp.MustCompile(`(?m)^([a-z_]+)(\{.*\})? (\S+)$`)

// Metrics returns all samples of the metrics page. The key is the name of the metric and its
// labels, as the page writes them.
func (p *Process) Metrics() map[string]float64 {
	p.t.Helper()
	status, body := p.Get("/metrics")
	if status != http.StatusOK {
		p.t.Fatalf("/metrics: %d %s", status, body)
	}
	samples := map[string]float64{}
	for _, m := range sample.FindAllStringSubmatch(body, -1) {
		value, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			p.t.Fatalf("/metrics: %s: %v", m[0], err)
		}
		samples[m[1]+m[2]] = value
	}
	return samples
}
