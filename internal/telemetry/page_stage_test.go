package telemetry

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"projector/projection"
	"projector/projection/event"
)

// scene is a state of an instance that a test shows on the status page.
type scene struct {
	health  *Health
	status  Status
	history *History
	letters *LastDeadLetters
}

func (s *scene) page() Page {
	return Page{Status: func() Status { return s.status }, History: s.history, DeadLetters: s.letters, Runbook: exampleRunbook, Repairs: "# Repairs"}
}

func (s *scene) server() *Server {
	return newServer("127.0.0.1:0", NewRegistry(), s.health, s.page(), quiet())
}

// busy returns a working instance of account_balance. Its partitions have several states.
func busy(partitions int) *scene {
	now := time.Now()
	ago := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	s := &scene{
		health: NewHealth(), letters: NewLastDeadLetters(), history: pastOf(now, 600),
		status: Status{
			Version: "v1.2.3", Instance: "projector-7d9f-x2k4/1-QRSTUVWX", Projection: "account_balance", Group: "account-balance-projector",
			Topic: "account-events", DLQTopic: "account-events.dlq", StartedAt: *ago(50 * time.Hour), LastProgressAt: ago(time.Second),
			Parks: true, Parked: &ParkedStatus{Accounts: 17, Events: 1234, OldestGapSeconds: 2700, ByClass: map[string]int64{"version_gap": 11, "invalid_amount": 5, "rejected_by_database": 1}},
		},
	}
	s.health.Started()
	for i := range partitions {
		position := int64(1_234_567 + 10_000*i)
		p := PartitionStatus{Topic: s.status.Topic, Partition: int32(i), Position: &position, State: projection.StateFlowing, Since: ago(time.Hour)}
		lag, seconds := int64(i*i%900), float64(i%7)/2
		if i%5 == 3 {
			p.State, lag, seconds = projection.StateIdle, 0, 0
		}
		end := position + lag
		p.End, p.LagRecords, p.LagSeconds = &end, &lag, &seconds
		margin := position - int64(1000*i)
		if p.MarginRecords = &margin; lag > 0 {
			left := 500_000 - 40_000*seconds
			p.MarginSeconds = &left
		}
		s.status.Partitions = append(s.status.Partitions, p)
	}
	classes := event.Classes()
	for i := range int64(27) {
		s.letters.Published(DeadLetter{
			At: *ago(time.Duration(27-i) * 97 * time.Second), Class: string(classes[i*i%int64(len(classes))]),
			DLQPartition: int32(i % 3), DLQOffset: 4000 + i, Topic: s.status.Topic, Partition: int32(i % 4), Offset: 1_234_000 + 7*i,
		})
	}
	return s
}

// troubled returns the instance of busy during an outage of the database. Some of its partitions
// need a person.
func troubled(partitions int) *scene {
	s := busy(partitions)
	since := time.Now().Add(-95 * time.Second)
	for i := range s.status.Partitions {
		p := &s.status.Partitions[i]
		switch i % 8 {
		case 1, 2:
			p.State, p.Since, p.Reason = projection.StateRetrying, &since, "postgres: connect (08006)"
		case 3:
			p.State, p.Since, p.Reason = projection.StateBreakerOpen, &since, "the breaker is open: 501 of the last 1000 records are dead letters, most of them malformed_payload: look at --topic, --format and --mapping, then projector resume"
		case 4:
			p.State, p.Since, p.Reason = projection.StatePaused, &since, "paused by ada@bank: new column, INC-1234"
		case 5:
			p.State, p.Since, p.Reason = projection.StateStopped, &since, `offsets 1234567 to 1240000 were removed by retention before they were consumed. See the runbook, "position expired"`
		case 6:
			*p = PartitionStatus{Topic: p.Topic, Partition: p.Partition, State: projection.StateStarting, Since: &since}
		case 7:
			p.State = projection.StateThrottled
		}
	}
	s.health.Fail("postgres", "PostgreSQL: connect (08006)")
	s.health.Fail("partition account-events/5", s.status.Partitions[5].Reason)
	return s
}

// hostile returns a scene in which the external texts contain markup and are very long.
func hostile() *scene {
	s := troubled(8)
	markup := `<script>alert(1)</script><img src=http://192.0.2.1/x onerror=alert(2)>"'&` + strings.Repeat("W", 200)
	s.status.Projection, s.status.Group, s.status.Topic, s.status.DLQTopic, s.status.Version = markup, markup, markup, markup, markup
	s.health.Fail(markup, markup)
	s.status.Parked.ByClass[markup] = math.MaxInt64
	for i := range s.status.Partitions {
		p := &s.status.Partitions[i]
		p.Topic, p.Reason = markup, markup
		huge, ages := int64(math.MaxInt64), 9.9e9
		p.Position, p.End, p.LagRecords, p.LagSeconds, p.MarginRecords, p.MarginSeconds = &huge, &huge, &huge, &ages, &huge, &ages
	}
	s.letters.Published(DeadLetter{At: time.Now(), Class: markup, Topic: markup, Partition: math.MaxInt32, Offset: math.MaxInt64, DLQOffset: math.MaxInt64})
	return s
}

// pastOf returns a history of the given number of seconds: a catch-up, then a nearly constant rate
// with one outage.
func pastOf(now time.Time, seconds int) *History {
	var counts projection.OutcomeCounts
	lag, second := int64(2_000_000), 0
	h := NewHistory(func() Sample {
		rate := int64(900 + 120*math.Sin(float64(second)/9))
		switch {
		case second > 350 && second < 400:
			lag += 900
			rate = 0
		case lag > 5000:
			rate = 15_000
			lag -= rate - 900
		default:
			lag = rate / 20
		}
		counts[projection.Applied] += int(rate)
		counts[projection.Duplicate] += int(rate / 10)
		counts[projection.Ignored] += int(rate / 40)
		counts[projection.DeadLettered] += int(rate / 300)
		behind := float64(lag) / 900
		records := lag
		s := Sample{At: now.Add(time.Duration(second-seconds) * time.Second), Records: counts, LagRecords: &records, LagSeconds: &behind}
		second++
		return s
	})
	for range seconds {
		h.sample()
	}
	return h
}

// statementScene is a scene of the projection account_statement, whose status page has no parked
// events.
func statementScene() *scene {
	s := busy(4)
	s.status.Projection, s.status.Parks, s.status.Parked = "account_statement", false, nil
	return s
}

func turnoverScene(rows int64) *scene {
	s := statementScene()
	s.status.Projection, s.status.Marks = "daily_turnover", true
	if rows >= 0 {
		s.status.InboxRows = &rows
	}
	return s
}

func (s *scene) body(t *testing.T) string {
	t.Helper()
	r := get(t, s.server(), "/")
	if r.code != 200 {
		t.Fatal(fmt.Sprint(r.code, r.body))
	}
	return r.body
}
