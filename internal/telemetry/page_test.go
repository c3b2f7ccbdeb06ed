package telemetry

import (
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"projector/projection"
)

func exampleStatus() Status {
	since := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	position, end, lag, seconds := int64(1_234_567), int64(1_234_600), int64(33), 75.0
	margin, left, longer := int64(900_000), 7200.0, 9000.0
	return Status{
		Version: "v1.2.3", Projection: "account_balance", Group: "account-balance-projector",
		Topic: topic, DLQTopic: topic + ".dlq", StartedAt: since, LastProgressAt: &since,
		Partitions: []PartitionStatus{
			{Topic: topic, Partition: 0, Position: &position, End: &end, LagRecords: &lag, LagSeconds: &seconds, MarginRecords: &margin, MarginSeconds: &longer, State: projection.StateFlowing},
			{Topic: topic, Partition: 1, State: projection.StateStopped, Since: &since, Reason: `position <b>overtaken</b> by retention`, MarginSeconds: &left},
			{Topic: topic, Partition: 2, State: projection.StateRetrying, Since: &since, Reason: "postgres: connection"},
		},
		Parks: true, Parked: &ParkedStatus{Accounts: 2, Events: 1234, OldestGapSeconds: 3700, ByClass: map[string]int64{"version_gap": 1, "invalid_amount": 1}},
	}
}

func TestStatusPageShowsWhatIsGoingOn(t *testing.T) {
	h := NewHealth()
	h.Started()
	h.Fail("database", "<script>alert(1)</script>")
	letters := NewLastDeadLetters()
	letters.Published(DeadLetter{At: time.Now(), Class: "version_gap", DLQPartition: 3, DLQOffset: 17, Topic: topic, Partition: 5, Offset: 1_000_001})
	s := newServer("", NewRegistry(), h, Page{Status: exampleStatus, DeadLetters: letters, History: pastOf(time.Now(), 10)}, quiet())
	r := get(t, s, "/")
	page := r.body
	if r.code != http.StatusOK || !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") {
		t.Errorf("%d %v", r.code, r.header)
	}
	contains(t, text(page),
		"Not ready database : &lt;script&gt;", "3 partitions: 1 stopped, 1 retrying, 1 flowing.",
		"Lag, records 33 ", "Behind 1 min 15 s ", "Accounts waiting 2 ", "Events parked 1\u202f234 ", "Oldest gap 1 h 1 min ",
		" 0 flowing 33 1 min 15 s 1\u202f234\u202f567 1\u202f234\u202f600 900\u202f000 lasts 2 h 30 min ",
		"Retention takes unread records in 2 h 0 min ", "Root causes: 1 invalid_amount, 1 version_gap.",
		" 1 stopped since 2026-01-01 00:00:00, ", "position &lt;b&gt;overtaken", " 2 retrying since 2026-01-01 00:00:00, ", "postgres: connection",
		"1: 1 version_gap", " ago 3/17 account-events/5/1000001 ",
		"version v1.2.3", "group account-balance-projector", "dead letters in account-events.dlq",
		"applied 15\u202f000 ",
	)
	if strings.Contains(page, "<script>") {
		t.Error("a reason is not escaped")
	}
}

// The function text returns the text of a page without markup.
func text(page string) string {
	_, body, _ := strings.Cut(page, "<body>")
	return strings.Join(strings.Split(spaces.ReplaceAllString(tags.ReplaceAllString(body, " "), " "), " ,"), ",")
}

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	spaces = regexp.MustCompile(`[ \n]+`)
)

func contains(t *testing.T, got string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(spaces.ReplaceAllString(strings.ReplaceAll(got, " .", "."), " "), want) {
			t.Errorf("it does not say %q in\n%s", want, got)
		}
	}
}

// TestStatusPageShowsBreakerAndPauses shows that the status page counts the partitions in each
// state, with the most urgent state first, and gives the reasons of an open breaker and of a pause.
func TestStatusPageShowsBreakerAndPauses(t *testing.T) {
	contains(t, text(troubled(8).body(t)), "8 partitions: 1 stopped, 1 breaker_open, 2 retrying, 1 starting, 1 paused,",
		" 3 breaker_open since ", "501 of the last 1000 records are dead letters", " 4 paused since ", "new column, INC-1234")
}

func TestStatusPageWithoutAnythingKnown(t *testing.T) {
	h := NewHealth()
	h.Started()
	contains(t, text(get(t, newTestServer(h, nil), "/").body),
		" Ready ", "No partition is assigned to this instance.", "None assigned.", "not measured yet", "Last progress none yet",
		"Dead letters since the start None.")
}

// TestStatusPageOfEachProjection shows that the status page has no fields for features that the
// projection lacks. Such a field is absent, and not shown as unknown.
func TestStatusPageOfEachProjection(t *testing.T) {
	uncounted := busy(4)
	uncounted.status.Parked = nil
	for _, c := range []struct {
		name       string
		scene      *scene
		want, none []string
	}{
		{"account_balance", busy(4), []string{"Accounts waiting 17 "}, []string{"Inbox"}},
		{"account_balance, not counted yet", uncounted, []string{"Accounts waiting, oldest gap not counted yet"}, []string{"Inbox"}},
		{"account_statement", statementScene(), []string{"account_statement"}, []string{"Accounts waiting", "Oldest gap", "Inbox"}},
		{"daily_turnover", turnoverScene(1_200_000), []string{"Inbox rows, estimated 1\u202f200\u202f000 "}, []string{"Accounts waiting", "Oldest gap"}},
		{"daily_turnover, an empty inbox", turnoverScene(0), []string{"Inbox rows, estimated 0 "}, nil},
		{"daily_turnover, not counted yet", turnoverScene(-1), []string{"Inbox rows, estimated not counted yet "}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			page := text(c.scene.body(t))
			contains(t, page, c.want...)
			for _, none := range c.none {
				if strings.Contains(page, none) {
					t.Errorf("it speaks of %q", none)
				}
			}
		})
	}
}

func TestStatusPageEscapesWhatComesFromOutside(t *testing.T) {
	page := hostile().body(t)
	for _, markup := range []string{"<script>", "<img", "onerror=alert(2)>\""} {
		if strings.Contains(page, markup) {
			t.Errorf("the page has %s", markup)
		}
	}
	if n := strings.Count(page, "&lt;script&gt;"); n < 15 {
		t.Errorf("only %d of the hostile texts are there", n)
	}
}

// TestStatusPageOfManyPartitions shows that the most urgent partitions come first if there are very
// many partitions.
func TestStatusPageOfManyPartitions(t *testing.T) {
	s := busy(256)
	for _, p := range []int{100, 200} {
		s.status.Partitions[p].State = projection.StateRetrying
	}
	s.status.Partitions[250].State = projection.StateStopped
	far := 1e6
	s.status.Partitions[77].LagSeconds = &far
	page := text(s.body(t))
	contains(t, page, "256 partitions: 1 stopped, 2 retrying, 202 flowing, 51 idle.", "All 256 partitions")
	first, all, _ := strings.Cut(page, "All 256 partitions")
	_, first, _ = strings.Cut(first, "To look at first")
	order := regexp.MustCompile(`(\d+) (stopped|retrying|flowing)`).FindAllStringSubmatch(first, -1)
	if len(order) != partitionsFirst || order[0][1] != "250" || order[1][1] != "100" && order[1][1] != "200" || order[3][1] != "77" {
		t.Errorf("first are %v", order)
	}
	if n := len(regexp.MustCompile(`(stopped|retrying|flowing|idle)`).FindAllString(all, -1)); n != 256 {
		t.Errorf("%d partitions in all", n)
	}
}

// TestStatusPageNeedsNobodyElse shows that the status page works without internet access and under
// its own content security policy.
func TestStatusPageNeedsNobodyElse(t *testing.T) {
	h := NewHealth()
	s := newTestServer(h, exampleStatus)
	r := get(t, s, "/")
	if csp := r.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "script-src 'self';") || !strings.Contains(csp, "style-src 'self';") || !strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("policy %q", csp)
	}
	page := r.body
	for _, forbidden := range []string{"://", "style=", "<style", "<script>", " onclick=", "unsafe"} {
		if strings.Contains(page+r.header.Get("Content-Security-Policy"), forbidden) {
			t.Errorf("the page breaks its policy or asks another host: %s", forbidden)
		}
	}
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"} {
		if got := r.header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	links := regexp.MustCompile(`(?:href|src)="([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(links) == 0 {
		t.Fatal("no links found")
	}
	h.Started()
	for _, link := range links {
		if r := get(t, s, "/"+strings.TrimPrefix(strings.Split(link[1], "#")[0], "./")); r.code != http.StatusOK {
			t.Errorf("%s answers %d", link[1], r.code)
		}
	}
	if css := get(t, s, "/style.css").body; !strings.Contains(css, "prefers-color-scheme: dark") || strings.Contains(css, "url(") {
		t.Error("the style sheet lacks dark mode or loads something")
	}
}

// TestStatusJSON shows that the names in /status.json do not change. These names are public and
// documented in docs/observability.md.
func TestStatusJSON(t *testing.T) {
	s := turnoverScene(7)
	s.status.Partitions = append(s.status.Partitions, PartitionStatus{Topic: topic, Partition: 9, State: projection.StateStarting})
	s.health.Fail("postgres", "PostgreSQL: connect (08006)")
	r := get(t, s.server(), "/status.json")
	var got map[string]any
	if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.code != http.StatusOK {
		t.Fatal(r.code, err)
	}
	for at, want := range map[string]string{
		"":           "dead_letters dlq_topic group inbox_rows instance lag_records lag_seconds last_progress_at margin_seconds parked partitions projection ready reasons records_per_second started_at topic version warnings",
		"partitions": "end lag_records lag_seconds margin_records margin_seconds partition position reason since state topic", "reasons": "condition reason since",
		"dead_letters": "by_class causes recent total", "records_per_second": "applied dead_lettered duplicate ignored",
	} {
		if names := namesOf(got, at); names != want {
			t.Errorf("%s: %s", at, names)
		}
	}
	letter := got["dead_letters"].(map[string]any)["recent"].([]any)
	if first := letter[0].(map[string]any); len(letter) != lettersKept || first["dlq_offset"] != 4026.0 || first["offset"] != 1_234_182.0 {
		t.Errorf("%d letters, the newest %v", len(letter), letter[0])
	}
	partitions := got["partitions"].([]any)
	if p := partitions[1].(map[string]any); p["position"] != 1_244_567.0 || p["lag_records"] != 1.0 || p["state"] != "flowing" {
		t.Errorf("partition 1: %v", p)
	}
	if p := partitions[4].(map[string]any); p["lag_records"] != nil || p["state"] != "starting" {
		t.Errorf("an unknown lag is %v, want null", p["lag_records"])
	}
	if got["ready"] != false || got["parked"] != nil || got["inbox_rows"] != 7.0 || got["lag_records"] != 5.0 || got["lag_seconds"] != 1.0 {
		t.Errorf("%v", got)
	}
}

// namesOf returns the sorted field names of an object, or of the first object in a list.
func namesOf(doc map[string]any, at string) string {
	if at != "" {
		switch v := doc[at].(type) {
		case []any:
			doc = v[0].(map[string]any)
		case map[string]any:
			doc = v
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(doc)), " ")
}

func TestStatusJSONWithoutPartitionsIsAnEmptyList(t *testing.T) {
	h := NewHealth()
	got := get(t, newTestServer(h, nil), "/status.json").body
	contains(t, got, `"partitions": []`, `"parked": null`, `"recent": []`, `"by_class": {}`, `"records_per_second": null`, `"lag_records": null`)
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
		0: "0", 999: "999", 1000: "1\u202f000", 1_234_567: "1\u202f234\u202f567", -1: "−1", -1000: "−1\u202f000",
		-9223372036854775808: "−9\u202f223\u202f372\u202f036\u202f854\u202f775\u202f808",
	} {
		if got := formatCount(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	if got := formatCount((*int64)(nil)); got != unknown {
		t.Errorf("nil: %q", got)
	}
}
