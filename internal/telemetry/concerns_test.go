package telemetry

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"projector/projection"
)

// TestThePageIsGreenOnlyWhenNobodyIsNeeded shows when the status page is green. An instance that is
// ready but needs a person is not green.
func TestThePageIsGreenOnlyWhenNobodyIsNeeded(t *testing.T) {
	inState := func(state projection.State, of ...int) func(*scene) {
		return func(s *scene) {
			for _, p := range of {
				s.status.Partitions[p].State = state
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*scene)
		level  level
		says   string
	}{
		"well":                    {func(*scene) {}, levelGood, " Ready 4 partitions:"},
		"a young gap":             {func(s *scene) { s.status.Parked.OldestGapSeconds = gapOldSeconds }, levelGood, " Ready 4 partitions:"},
		"an old gap":              {func(s *scene) { s.status.Parked.OldestGapSeconds = gapOldSeconds + 1 }, levelWarn, "Ready, but needs attention Accounts wait for an event, one of them for 1 h 0 min"},
		"every partition retries": {inState(projection.StateRetrying, 0, 1, 2, 3), levelWarn, "needs attention All partitions (4): retrying"},
		"one partition retries":   {inState(projection.StateRetrying, 2), levelWarn, "needs attention 1 of 4 partitions: retrying"},
		"one is paused":           {inState(projection.StatePaused, 0), levelWarn, "1 of 4 partitions: paused"},
		"throttled":               {inState(projection.StateThrottled, 0), levelGood, " Ready "},
		"retention is near": {func(s *scene) {
			near, margin, lag := retentionNearSeconds-1, int64(10), int64(11)
			p := &s.status.Partitions[1]
			p.MarginSeconds, p.MarginRecords, p.LagRecords = &near, &margin, &lag
		}, levelWarn, "1 of 4 partitions: retention is about to remove unread records"},
		"most of the log is read": {func(s *scene) {
			near, margin, lag := retentionNearSeconds-1, int64(12), int64(11)
			p := &s.status.Partitions[1]
			p.MarginSeconds, p.MarginRecords, p.LagRecords = &near, &margin, &lag
		}, levelGood, " Ready "},
		"a warning": {func(s *scene) { s.health.Warn("grants", "one is missing") }, levelWarn, "needs attention one is missing"},
		"not ready": {func(s *scene) {
			s.health.Fail("postgres", "PostgreSQL: connect (08006)")
			inState(projection.StateRetrying, 0)(s)
		}, levelBad, "Not ready postgres : PostgreSQL: connect (08006)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := busy(4)
			s.status.Parked.OldestGapSeconds = 60
			c.change(s)
			page := s.body(t)
			contains(t, text(page), c.says)
			if !strings.Contains(page, fmt.Sprintf(`class="banner %s"`, c.level)) {
				t.Errorf("the page is not %s", c.level)
			}
		})
	}
}

// TestConcernsAreThoseOfTheAlerts shows that the thresholds of the status page equal the thresholds
// of the alerts.
func TestConcernsAreThoseOfTheAlerts(t *testing.T) {
	alerts, err := os.ReadFile("../../deploy/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, limit := range map[string]string{
		"ProjectorGapOld":        fmt.Sprintf("projector_oldest_gap_seconds) > %g\n", gapOldSeconds),
		"ProjectorRetentionNear": fmt.Sprintf("projector_retention_margin_seconds) < %g\n", retentionNearSeconds),
	} {
		_, alert, _ := strings.Cut(string(alerts), "- alert: "+name+"\n")
		if alert, _, _ = strings.Cut(alert, "- alert:"); !strings.Contains(alert, limit) {
			t.Errorf("%s has another limit than the page: %s", name, limit)
		}
	}
}

// TestEveryStateLinksToTheRunbook shows that the links of states and reasons lead to existing
// sections of the runbook.
func TestEveryStateLinksToTheRunbook(t *testing.T) {
	runbook, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	rendered := string(newRunbookPage(string(runbook)).Body)
	s := troubled(16)
	s.health.Fail("kafka", "Kafka: connect")
	well := busy(8)
	well.health.Warn("grants", `one is missing. See the runbook, "Grants on the database"`)
	contains(t, well.body(t), `href="runbook#grants-on-the-database">one is missing`)
	for _, scene := range []*scene{s, well} {
		scene.status.Partitions[3].State = projection.StatePaused
		links := regexp.MustCompile(`href="runbook#([^"]*)"`).FindAllStringSubmatch(scene.body(t), -1)
		if len(links) < 3 {
			t.Errorf("only %d links", len(links))
		}
		for _, link := range links {
			if !strings.Contains(rendered, `id="`+link[1]+`"`) {
				t.Errorf("the runbook has no section %q", link[1])
			}
		}
	}
	for _, want := range []string{`href="runbook#position-expired">stopped`, `href="runbook#breaker-open">breaker_open`, `href="runbook#position-expired">runbook`} {
		if !strings.Contains(s.body(t), want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

// TestCausesComeFirst shows that the events that cause a wait are listed before the events that
// only wait, even if thousands wait.
func TestCausesComeFirst(t *testing.T) {
	l := NewLastDeadLetters()
	l.Published(DeadLetter{At: time.Now(), Class: "invalid_amount", DLQOffset: 7, Topic: topic, Offset: 70})
	for i := range int64(2000) {
		l.Published(DeadLetter{At: time.Now(), Class: "version_gap", DLQOffset: 100 + i, Topic: topic, Offset: 1000 + i})
	}
	s := busy(1)
	s.letters = l
	page := text(s.body(t))
	contains(t, page, "2\u202f001: 1 invalid_amount, 2\u202f000 version_gap.", " ago 0/7 account-events/0/70 ")
	if strings.Index(page, "0/7 account-events/0/70") > strings.Index(page, "0/2099 account-events/0/2999") {
		t.Error("the cause is below the events that wait")
	}
}
