package telemetry

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

func exampleStatus() Status {
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	position, end, lag, seconds := int64(1_234_567), int64(1_234_600), int64(33), 75.0
	return Status{
		Version: "v1.2.3", Projection: "account_balance", Group: "account-balance-projector",
		Topic: topic, DLQTopic: topic + ".dlq", StartedAt: since,
		Partitions: []PartitionStatus{
			{Topic: topic, Partition: 0, Position: &position, End: &end, LagRecords: &lag, LagSeconds: &seconds, State: StateFlowing},
			{Topic: topic, Partition: 1, State: StateStopped, Since: &since, Reason: `position <b>overtaken</b> by retention`},
			{Topic: topic, Partition: 2, State: StateRetrying, Since: &since, Reason: "postgres: connection"},
		},
		Parked: &ParkedStatus{Accounts: 2, Events: 1234, OldestGapSeconds: 3700},
	}
}

func TestStatusPageShowsWhatIsGoingOn(t *testing.T) {
	h, _ := newTestHealth()
	h.Started()
	h.Fail("database", "<script>alert(1)</script>")
	r := get(t, newTestServer(h, exampleStatus), "/")
	page := r.body
	if r.code != http.StatusOK || !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") {
		t.Errorf("%d %v", r.code, r.header)
	}
	for _, want := range []string{
		"Not ready", "database: &lt;script&gt;", "account-events/1", "1\u2009234\u2009567", "1\u2009234\u2009600",
		"1 min 15 s", "flowing", "stopped for ", "retrying for ", "position &lt;b&gt;overtaken", "postgres: connection",
		"1\u2009234<", "1 h 1 min", "v1.2.3", "account-balance-projector", "account-events.dlq",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(page, "<script") {
		t.Error("a reason is not escaped")
	}
}

func TestStatusPageWithoutAnythingKnown(t *testing.T) {
	h, _ := newTestHealth()
	h.Started()
	page := get(t, newTestServer(h, nil), "/").body
	for _, want := range []string{"<strong>Ready</strong>", "not known yet", "None assigned."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// The page must work in a cluster without internet and under its own policy.
func TestStatusPageNeedsNobodyElse(t *testing.T) {
	h, _ := newTestHealth()
	s := newTestServer(h, exampleStatus)
	r := get(t, s, "/")
	if csp := r.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "style-src 'self'") {
		t.Errorf("policy %q", csp)
	}
	page := r.body
	if strings.Contains(page, "://") || strings.Contains(page, "style=") || strings.Contains(page, "<style") {
		t.Error("the page breaks its policy or asks another host")
	}
	links := regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(links) == 0 {
		t.Fatal("no links found")
	}
	h.Started()
	for _, link := range links {
		if r := get(t, s, "/"+link[1]); r.code != http.StatusOK {
			t.Errorf("%s answers %d", link[1], r.code)
		}
	}
	if css := get(t, s, "/style.css").body; !strings.Contains(css, "prefers-color-scheme: dark") || strings.Contains(css, "url(") {
		t.Error("the style sheet lacks dark mode or loads something")
	}
}

func TestStatusJSON(t *testing.T) {
	h, _ := newTestHealth()
	r := get(t, newTestServer(h, exampleStatus), "/status.json")
	var got struct {
		Ready      bool
		Reasons    []Reason
		Projection string
		Partitions []map[string]any
		Parked     map[string]any
	}
	if err := json.Unmarshal([]byte(r.body), &got); err != nil {
		t.Fatal(err)
	}
	if r.code != http.StatusOK || got.Ready || len(got.Reasons) != 1 || got.Projection != "account_balance" || len(got.Partitions) != 3 {
		t.Fatalf("%d %+v", r.code, got)
	}
	if got.Partitions[0]["position"] != 1_234_567.0 || got.Partitions[0]["state"] != "flowing" {
		t.Errorf("partition 0: %v", got.Partitions[0])
	}
	if v, there := got.Partitions[1]["lag_records"]; !there || v != nil {
		t.Errorf("an unknown lag is %v, want null", v)
	}
	if got.Parked["oldest_gap_seconds"] != 3700.0 {
		t.Errorf("parked: %v", got.Parked)
	}
}

func TestStatusJSONWithoutPartitionsIsAnEmptyList(t *testing.T) {
	h, _ := newTestHealth()
	got := get(t, newTestServer(h, nil), "/status.json").body
	if !strings.Contains(got, `"partitions": []`) || !strings.Contains(got, `"parked": null`) {
		t.Errorf("got %s", got)
	}
}

func TestFormatSeconds(t *testing.T) {
	for s, want := range map[float64]string{
		0: "0.0 s", 9.94: "9.9 s", 10: "10 s", 59.9: "59 s", 60: "1 min 0 s", 3599: "59 min 59 s",
		3600: "1 h 0 min", 86399: "23 h 59 min", 86400: "1 d 0 h", 2_000_000: "23 d 3 h", -1: unknown,
	} {
		if got := formatSeconds(s); got != want {
			t.Errorf("%v: %q, want %q", s, got, want)
		}
	}
}

func TestFormatCount(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1\u2009000", 1_234_567: "1\u2009234\u2009567", -1: "−1", -1000: "−1\u2009000",
		-9223372036854775808: "−9\u2009223\u2009372\u2009036\u2009854\u2009775\u2009808",
	} {
		if got := formatCount(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	if got := formatCount((*int64)(nil)); got != unknown {
		t.Errorf("nil: %q", got)
	}
}
