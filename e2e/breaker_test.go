package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"projector/internal/testbank"
	"projector/projection/event"
)

// poison returns n records that cannot be decoded.
func poison(partition int32, n int) []testbank.Record {
	records := make([]testbank.Record, n)
	for i := range records {
		records[i] = testbank.Record{Partition: partition, Key: []byte("poison"), Value: []byte("no event")}
	}
	return records
}

// breakerOpens waits until the breaker of a partition is open. It expects /readyz, the metric, the
// status page and `position` to report this.
func (w *world) breakerOpens(p *program, partition int32, class event.Class) positionState {
	w.t.Helper()
	awaitWithin(w.t, patience, "unready", p.answers("/readyz", 503, string(class)))
	_, reason := p.get("/readyz")
	for _, want := range []string{fmt.Sprintf("%s/%d", w.topic, partition), "share", "--breaker-share", fmt.Sprintf("projector resume --partition=%d", partition)} {
		if !strings.Contains(reason, want) {
			w.t.Errorf("/readyz does not say %q: %s", want, reason)
		}
	}
	await(w.t, "gauge", p.gauge("projector_breaker_open", w.topic, partition, 1))
	if _, page := p.get("/"); !strings.Contains(page, `class="breaker_open"`) {
		w.t.Error("the status page does not say that the breaker is open")
	}
	s := w.positionStates()[partition]
	if s.State != "breaker_open" || s.Reason == nil || !strings.Contains(*s.Reason, string(class)) {
		w.t.Errorf("position: %+v", s)
	}
	return s
}

// gauge returns a check for await. It succeeds when the gauge of the partition has the value.
func (p *program) gauge(name, topic string, partition int32, want float64) func() string {
	return func() string {
		for sample, value := range p.metrics() {
			if strings.HasPrefix(sample, name+"{") && strings.Contains(sample, fmt.Sprintf(`partition="%d"`, partition)) &&
				strings.Contains(sample, fmt.Sprintf("topic=%q", topic)) {
				if value != want {
					return fmt.Sprintf("%s %v, want %v", name, value, want)
				}
				return ""
			}
		}
		return name + " is not there"
	}
}

// statesAfter runs pause or resume and returns the states of the partitions, in order.
func (w *world) statesAfter(command string, args ...string) (states []string) {
	w.t.Helper()
	status, stdout, stderr := w.command(command, append(args, "--output=json", "--actor=me")...)
	if status != 0 {
		w.t.Fatalf("%s: exit status %d: %s", command, status, stderr)
	}
	for text := range strings.Lines(stdout) {
		var line struct {
			Topic      string
			Partition  int32
			State      string
			Group      string
			Projection string
		}
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&line); err != nil || line.Topic != w.topic || line.Group != w.group || line.Projection == "" {
			w.t.Fatalf("%v: %s", err, text)
		}
		states = append(states, fmt.Sprintf("%d %s", line.Partition, line.State))
	}
	return states
}

// deadLetterOffsets returns the source offsets of a partition that have a dead letter in the DLQ
// topic. The result has no offset twice.
func (w *world) deadLetterOffsets(partition int32) []int64 {
	w.t.Helper()
	var offsets []int64
	status, stdout, stderr := w.command("dlq", "list", "--output=json", fmt.Sprint("--partition=", partition))
	if status != 0 {
		w.t.Fatalf("dlq list: exit status %d: %s", status, stderr)
	}
	for text := range strings.Lines(stdout) {
		var line struct{ Offset int64 }
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			w.t.Fatal(err)
		}
		offsets = append(offsets, line.Offset)
	}
	slices.Sort(offsets)
	return slices.Compact(offsets)
}

// The method durable returns a check for await. It succeeds when the stored position of a partition
// equals the offset.
func (w *world) durable(partition int32, offset int64) func() string {
	return func() string {
		if at := w.positions()[partition]; at != offset {
			return fmt.Sprintf("partition %d is at %d, want %d", partition, at, offset)
		}
		return ""
	}
}

// TestBreakerStopsAStorm starts each built-in projection with a wrong --format. The first records
// are dead-lettered, and then the breaker stops the partition. An operator corrects the flag, sets
// the position back and resumes the partition.
func TestBreakerStopsAStorm(t *testing.T) {
	t.Parallel()
	const window, records = 100, 2500
	for _, projection := range []string{"account_balance", "account_statement", "daily_turnover"} {
		t.Run(projection, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.produce(euros(0, "a", records))
			flags := []string{"--projection=" + projection, fmt.Sprint("--breaker-window=", window)}
			p := w.start(append(flags, "--format=cloudevents")...)
			stopped := w.breakerOpens(p, 0, event.MalformedPayload)
			if stopped.Position == nil || *stopped.Position != window {
				t.Errorf("position %+v, want %d", stopped, window)
			}
			if reported := p.linesWith("records dead-lettered"); len(reported) != 1 || reported[0].Level != "WARN" {
				t.Errorf("of %d dead letters of one class the log has: %+v", window, reported)
			}
			p.terminate()

			p = w.start(flags...) // with the right format
			w.breakerOpens(p, 0, event.MalformedPayload)
			if n := w.ends(w.dlq)[0]; n != window {
				t.Errorf("%d dead letters, want %d", n, window)
			}
			// The position is set to the start, so the dead-lettered records are read again.
			w.set(0, "", "--partition=0", "--start", "--reason=wrong format", "--yes", "--projection="+projection)
			if got := w.statesAfter("resume", "--partition=0", "--reason=right format", "--projection="+projection); !slices.Equal(got, []string{"0 running"}) {
				t.Errorf("without --yes: %q", got)
			}
			w.breakerOpens(p, 0, event.MalformedPayload)
			w.statesAfter("resume", "--partition=0", "--reason=right format", "--yes", "--projection="+projection)
			await(t, "all consumed", w.arrived)
			await(t, "ready", p.answers("/readyz", 200, ""))
			await(t, "gauge", p.gauge("projector_breaker_open", w.topic, 0, 0))
			await(t, "all applied", p.counted(map[string]int{
				fmt.Sprintf(`projector_records_total{outcome="applied",partition="0",projection=%q,topic=%q}`, projection, w.topic): records,
			}))
			p.terminate()
		})
	}
}

// TestBreakerLetsOthersGoOn stops the second of two partitions. The first partition has dead
// letters too, but their share is below the limit, so it must continue.
func TestBreakerLetsOthersGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	var mixed []testbank.Record
	for i, r := range euros(0, "a", 700) {
		if i%10 < 4 {
			mixed = append(mixed, poison(0, 1)...)
		}
		mixed = append(mixed, r)
	}
	w.produce(mixed)
	w.produce(poison(1, 500))
	p := w.start("--breaker-window=100", "--breaker-share=0.4") // 4 of 14 records are dead letters
	w.breakerOpens(p, 1, event.MalformedPayload)
	await(t, "the other is consumed", w.durable(0, int64(len(mixed))))
	w.produce(euros(0, "b", 50))
	await(t, "the other goes on", w.durable(0, int64(len(mixed))+50))
	if n := len(w.deadLetterOffsets(1)); n != 100 {
		t.Errorf("%d dead letters of the partition that stopped, want 100", n)
	}

	// A rebuild reads the same records and no breaker stops it.
	if status, _, stderr := w.command("rebuild"); status != 0 {
		t.Errorf("rebuild: exit status %d: %s", status, stderr)
	}

	// The operator accepts the dead letters up to offset 450. After this offset the breaker counts
	// again.
	w.statesAfter("resume", "--partition=1", "--through=450", "--reason=accepted", "--yes")
	await(t, "what is accepted", w.durable(1, 500))
	await(t, "ready", p.answers("/readyz", 200, ""))
	w.produce(poison(1, 100))
	w.breakerOpens(p, 1, event.MalformedPayload)
	await(t, "the window begins behind it", w.durable(1, 550))
	p.terminate()
	want := "resume 1 100 from breaker_open to running, through 450 me accepted"
	if log := w.statusAudits(); log != want {
		t.Errorf("recorded:\n got %s\nwant %s", log, want)
	}
}

// statusAudits returns the pauses and resumes from the audit trail, in order.
func (w *world) statusAudits() string {
	w.t.Helper()
	return w.line(`SELECT coalesce(string_agg(concat_ws(' ', action, partition, "offset", result, actor, reason), ', ' ORDER BY id), '')
		FROM dlq_action WHERE action IN ('pause', 'resume') AND topic = $1`, w.topic)
}

// TestBreakerIsKilled kills the program several times while every record is dead-lettered. The
// number of different dead letters must be the same as without the kills.
func TestBreakerIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	const window = 2000
	w.produce(poison(0, 6000))
	flag := fmt.Sprint("--breaker-window=", window)
	for round := range 3 {
		p := w.start(flag)
		await(t, "some are published", func() string {
			if n := w.ends(w.dlq)[0]; n <= int64(round*100) {
				return fmt.Sprintf("%d dead letters", n)
			}
			return ""
		})
		p.kill()
	}
	p := w.start(flag)
	w.breakerOpens(p, 0, event.MalformedPayload)
	if offsets := w.deadLetterOffsets(0); len(offsets) != window || offsets[window-1] != window-1 {
		t.Errorf("%d different records were dead-lettered, want %d", len(offsets), window)
	}
	p.terminate()
	await(t, "Kafka's offset too", func() string {
		if at := w.committed()[0]; at != window {
			return fmt.Sprint(at)
		}
		return ""
	})
}

// TestBreakerAtAConstraint adds a column to account_balance that makes PostgreSQL refuse every new
// row. The breaker's reason must name the column and the remedy.
func TestBreakerAtAConstraint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec("ALTER TABLE account_balance ADD COLUMN branch text NOT NULL")
	var records []testbank.Record
	for i := range 30 {
		records = append(records, euros(0, fmt.Sprint("a", i), 2)...)
	}
	w.produce(records)
	p := w.start("--breaker-window=10")
	w.breakerOpens(p, 0, event.RejectedByDatabase)
	_, reason := p.get("/readyz")
	for _, want := range []string{"23502", "column branch", "table account_balance", "give the column a default"} {
		if !strings.Contains(reason, want) {
			t.Errorf("/readyz does not say %q: %s", want, reason)
		}
	}
	if reported := p.linesWith("records dead-lettered"); len(reported) == 0 || !strings.Contains(reported[0].Reason, "column branch") {
		t.Errorf("the log has: %+v", reported)
	}
	w.exec("ALTER TABLE account_balance ALTER COLUMN branch SET DEFAULT 'head'")
	w.statesAfter("resume", "--all", "--reason=column has a default", "--yes")
	await(t, "all consumed", w.arrived)
	if status, _, stderr := w.command("dlq", "replay", "--class=rejected_by_database", "--yes"); status != 0 {
		t.Fatalf("dlq replay: exit status %d: %s", status, stderr)
	}
	if wrong := w.differences(w.oracle()); wrong != "" {
		t.Error(wrong)
	}
	p.terminate()
}

// TestBreakerAtAnEmptyRegistry uses a schema registry in which all schemas were deleted.
func TestBreakerAtAnEmptyRegistry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	registry := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
		out.WriteHeader(http.StatusNotFound)
		_, _ = out.Write([]byte(`{"error_code":40403,"message":"Schema not found"}`))
	}))
	defer registry.Close()
	records := make([]testbank.Record, 500)
	for i := range records {
		records[i] = testbank.Record{Key: []byte("a"), Value: []byte{0, 0, 0, 0, byte(i % 3), 2, 4}} // the schema id is 0, 1 or 2
	}
	w.produce(records)
	p := w.start("--format=avro", "--schema-registry-url="+registry.URL, "--breaker-window=100")
	w.breakerOpens(p, 0, event.MalformedPayload)
	if _, reason := p.get("/readyz"); !strings.Contains(reason, "registry") {
		t.Errorf("/readyz does not name the registry: %s", reason)
	}
	if n := w.ends(w.dlq)[0]; n != 100 {
		t.Errorf("%d dead letters, want 100", n)
	}
	p.terminate()
}

// TestPause pauses partitions before and during their consumption.
func TestPause(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.produce(euros(0, "a", 5))
	w.produce(euros(1, "b", 5))
	if got := w.statesAfter("pause", "--partition=1", "--new-group", "--reason=not yet"); !slices.Equal(got, []string{"1 paused"}) || w.numPositions() != 0 {
		t.Errorf("without --yes: %q", got)
	}
	w.statesAfter("pause", "--partition=1", "--new-group", "--reason=not yet", "--yes")
	p := w.start()
	await(t, "the other is consumed", w.durable(0, 5))
	await(t, "gauge", p.gauge("projector_paused", w.topic, 1, 1))
	await(t, "ready", p.answers("/readyz", 200, ""))
	if s := w.positionStates()[1]; s.text() != "0 of 0 to 5, lag 5, margin 0, paused" || s.Reason == nil || *s.Reason != "paused by me: not yet" {
		t.Errorf("%+v", s)
	}
	w.statesAfter("resume", "--all", "--reason=now", "--yes")
	await(t, "goes on", w.durable(1, 5))

	w.statesAfter("pause", "--all", "--reason=maintenance", "--yes")
	awaitWithin(t, soon, "obeyed", p.gauge("projector_paused", w.topic, 0, 1))
	awaitWithin(t, soon, "obeyed", p.gauge("projector_paused", w.topic, 1, 1))
	w.produce(euros(0, "c", 5))
	p.terminate()
	p = w.start() // the pause survives a restart
	await(t, "ready", p.answers("/readyz", 200, ""))
	await(t, "gauge", p.gauge("projector_paused", w.topic, 0, 1))
	if _, page := p.get("/"); !strings.Contains(page, `class="paused"`) {
		t.Error("the status page does not say that it is paused")
	}
	if status, _ := p.get("/readyz"); status != 200 {
		t.Errorf("/readyz: %d", status)
	}
	if c := w.versionOf("c"); c != 0 {
		t.Errorf("applied while paused: version %d", c)
	}
	if status, _, stderr := w.command("rebuild"); status != 0 {
		t.Errorf("rebuild while paused: exit status %d: %s", status, stderr)
	}
	w.statesAfter("resume", "--all", "--reason=done", "--yes")
	await(t, "goes on", w.arrived)
	await(t, "gauge", p.gauge("projector_paused", w.topic, 0, 0))
	p.terminate()
	w.atRest()
	want := "pause 1 0 from running to paused me not yet, resume 0 5 from running to running me now, resume 1 0 from paused to running me now, " +
		"pause 0 5 from running to paused me maintenance, pause 1 5 from running to paused me maintenance, " +
		"resume 0 5 from paused to running me done, resume 1 5 from paused to running me done"
	if log := w.statusAudits(); log != want {
		t.Errorf("recorded:\n got %s\nwant %s", log, want)
	}
}

// numPositions counts the position rows of the group.
func (w *world) numPositions() (n int) {
	w.t.Helper()
	if err := w.db.QueryRow(w.t.Context(), "SELECT count(*) FROM projector_position WHERE consumer_group = $1", w.group).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func TestPauseAndResumeRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	for _, c := range []struct {
		status int
		why    string
		args   []string
	}{
		{2, "--reason", []string{"--partition=0"}},
		{2, "--reason", []string{"--partition=0", "--reason="}},
		{2, "--partition=N and --all", []string{"--reason=test"}},
		{2, "--partition=N and --all", []string{"--partition=0", "--all", "--reason=test"}},
		{2, "--partition", []string{"--partition=-1", "--reason=test"}},
		{1, "has no positions", []string{"--all", "--reason=test"}},
		{1, "no partition 7", []string{"--partition=7", "--new-group", "--reason=test"}},
	} {
		for _, command := range []string{"pause", "resume"} {
			if status, _, stderr := w.command(command, append(c.args, "--yes")...); status != c.status || !strings.Contains(stderr, c.why) {
				t.Errorf("%s %q: exit status %d, want %d: %s, want %q", command, c.args, status, c.status, stderr, c.why)
			}
		}
	}
	if status, _, stderr := w.command("resume", "--all", "--reason=test", "--through=-1", "--yes"); status != 2 || !strings.Contains(stderr, "--through") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	if log := w.statusAudits(); log != "" || w.numPositions() != 0 {
		t.Errorf("recorded: %s", log)
	}
}
