package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

// positionState is a line of `projector position`.
type positionState struct {
	Topic         string
	Partition     int32
	Position      *int64
	LogStart      *int64 `json:"log_start"`
	End           *int64
	LagRecords    *int64   `json:"lag_records"`
	MarginRecords *int64   `json:"margin_records"`
	MarginSeconds *float64 `json:"margin_seconds"`
	State         string
	Reason        *string
	Owner         *string
}

// The method text returns the line without the fields that differ from run to run.
func (s positionState) text() string {
	n := func(v *int64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprint(*v)
	}
	return fmt.Sprintf("%s of %s to %s, lag %s, margin %s, %s", n(s.Position), n(s.LogStart), n(s.End), n(s.LagRecords), n(s.MarginRecords), s.State)
}

// positionStates runs `projector position` and returns its lines.
func (w *world) positionStates(args ...string) []positionState {
	w.t.Helper()
	status, stdout, stderr := w.command("position", append(args, "--output=json")...)
	if status != 0 {
		w.t.Fatalf("position: exit status %d: %s", status, stderr)
	}
	return jsonLines[positionState](w.t, stdout)
}

// outcome is a line of `projector position set`.
type outcome struct {
	Topic         string
	Partition     int32
	From          *int64
	To            int64
	UnreadSkipped int64 `json:"unread_skipped"`
	Result        *string
	Group         string
	Projection    string
}

func jsonLines[T any](t testing.TB, text string) (lines []T) {
	t.Helper()
	for line := range strings.Lines(text) {
		var v T
		d := json.NewDecoder(strings.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines = append(lines, v)
	}
	return lines
}

// The method set runs `projector position set` and expects an exit status. If why is not empty, the
// error must contain it.
func (w *world) set(status int, why string, args ...string) []outcome {
	w.t.Helper()
	got, stdout, stderr := w.command("position", append([]string{"set", "--output=json"}, args...)...)
	if got != status || !strings.Contains(stderr, why) {
		w.t.Fatalf("position set %s: exit status %d, want %d: %s, want %q", strings.Join(args, " "), got, status, stderr, why)
	}
	return jsonLines[outcome](w.t, stdout)
}

// versionOf returns the version of an account, or 0 if it has no row.
func (w *world) versionOf(account string) int64 { w.t.Helper(); return w.rows()[account].Version }

func TestPositions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	keep := "3600000"
	if _, err := w.admin.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &keep}}, w.topic); err != nil {
		t.Fatal(err)
	}
	is := func(what string, want ...string) []positionState {
		t.Helper()
		at := w.positionStates()
		var got []string
		for _, s := range at {
			got = append(got, s.text())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n got %q\nwant %q", what, got, want)
		}
		return at
	}
	w.produce(euros(0, "a", 5))
	is("before the first start", "- of 0 to 5, lag 5, margin -, running", "- of 0 to 0, lag 0, margin -, running")

	p := w.start()
	await(t, "all consumed", w.arrived)
	for _, s := range is("running", "5 of 0 to 5, lag 0, margin 5, running", "0 of 0 to 0, lag 0, margin 0, running") {
		if s.Owner == nil || !strings.Contains(*s.Owner, "/") || s.Reason != nil || s.MarginSeconds != nil {
			t.Errorf("partition %d: %+v; want an owner, and nothing that retention could take", s.Partition, s)
		}
	}
	_, table, _ := w.command("position")
	if lines := strings.Split(table, "\n"); len(lines[0]) > 80 || !strings.HasPrefix(lines[3], "owned by ") || !strings.HasSuffix(lines[3], ": 0, 1") {
		t.Errorf("it does not fit a terminal, or does not say whose the partitions are:\n%s", table)
	}
	p.terminate()
	w.produce(euros(0, "b", 3))
	for _, s := range is("nothing runs", "5 of 0 to 8, lag 3, margin 5, running", "0 of 0 to 0, lag 0, margin 0, running") {
		if s.Owner != nil {
			t.Errorf("partition %d has an owner: %s", s.Partition, *s.Owner)
		}
		if left := s.MarginSeconds; s.Partition == 0 && (left == nil || *left > 3600 || *left < 3600-90) {
			t.Errorf("retention takes the first unread record in %v s, want almost an hour", left)
		}
	}

	w.deleteUntil(0, 7)
	stopped := is("overtaken by retention", "5 of 7 to 8, lag 3, margin -2, stopped", "0 of 0 to 0, lag 0, margin 0, running")[0]
	if stopped.Reason == nil || !strings.Contains(*stopped.Reason, "offsets 5 to 6 were removed by retention") {
		t.Errorf("reason %v", stopped.Reason)
	}
}

// deleteUntil removes the records of a partition before an offset.
func (w *world) deleteUntil(partition int32, offset int64) {
	w.t.Helper()
	offsets := kadm.Offsets{}
	offsets.AddOffset(w.topic, partition, offset, -1)
	if _, err := w.admin.DeleteRecords(w.t.Context(), offsets); err != nil {
		w.t.Fatal(err)
	}
}

// TestPositionSetRefuses expects wrong flags, offsets outside the log and moves that would skip
// unread records to be refused. No position may change.
func TestPositionSetRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.produce(euros(0, "a", 5))
	w.produce(euros(1, "b", 5))
	p := w.start()
	await(t, "all consumed", w.arrived)
	p.terminate()
	w.produce(euros(0, "c", 4))
	w.deleteUntil(0, 2)
	before := w.positionRows()

	why := "--reason=test"
	for _, c := range []struct {
		status int
		why    string
		args   []string
	}{
		{2, "--reason", []string{"--partition=0", "--start"}},
		{2, "--reason", []string{"--partition=0", "--start", "--reason="}},
		{2, "--partition=N and --all", []string{"--start", why}},
		{2, "--partition=N and --all", []string{"--partition=0", "--all", "--start", why}},
		{2, "--offset, --time, --start and --end", []string{"--partition=0", why}},
		{2, "--offset, --time, --start and --end", []string{"--partition=0", "--start", "--end", why}},
		{2, "--expect", []string{"--all", "--start", "--expect=5", why}},
		{2, "--time", []string{"--all", "--time=yesterday", why}},
		{1, "no partition 7", []string{"--partition=7", "--start", why}},
		{1, "10 is outside the log, which goes from 2 to 9", []string{"--partition=0", "--offset=10", "--skip-unread", why}},
		{1, "1 is outside the log, which goes from 2 to 9", []string{"--partition=0", "--offset=1", why}},
		{1, "--skip-unread", []string{"--partition=0", "--end", why}},
		{1, "the position is 5, and --expect says 4", []string{"--partition=0", "--start", "--expect=4", why}},
		{1, "partition 0: 4 offsets from 5 on have not been read", []string{"--all", "--end", why}},
	} {
		w.set(c.status, c.why, append(c.args, "--yes")...)
	}
	if got := w.set(0, "", "--all", "--end", "--skip-unread", why); len(got) != 2 || got[0].Result != nil ||
		*got[0].From != 5 || got[0].To != 9 || got[0].UnreadSkipped != 4 || got[1].UnreadSkipped != 0 {
		t.Errorf("without --yes: %+v", got)
	}
	if after := w.positionRows(); after != before {
		t.Errorf("changed from %s to %s", before, after)
	}
	if n := w.audits(); n != "" {
		t.Errorf("recorded: %s", n)
	}
}

// positionRows returns the group's position rows with all columns.
func (w *world) positionRows() string {
	w.t.Helper()
	return w.line("SELECT string_agg(p::text, E'\\n' ORDER BY partition) FROM projector_position p WHERE consumer_group = $1", w.group)
}

// audits returns the position changes in the audit trail, in order.
func (w *world) audits() string {
	w.t.Helper()
	return w.line(`SELECT coalesce(string_agg(concat_ws(' ', partition, result, actor, reason), ', ' ORDER BY id), '')
		FROM dlq_action WHERE action = 'position_set' AND topic = $1`, w.topic)
}

func (w *world) line(query string, args ...any) (text string) {
	w.t.Helper()
	if err := w.db.QueryRow(w.t.Context(), query, args...).Scan(&text); err != nil {
		w.t.Fatal(err)
	}
	return text
}

// TestPositionSet moves positions back and forth, with and without a running consumer.
func TestPositionSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.produce(euros(0, "a", 5))
	p := w.start()
	await(t, "all consumed", w.arrived)

	// The position is set back while a consumer runs.
	w.exec("DELETE FROM account_balance WHERE account_id = 'a'")
	if got := w.set(0, "", "--partition=0", "--offset=0", "--expect=5", "--reason=again", "--actor=me", "--yes"); len(got) != 1 ||
		*got[0].From != 5 || got[0].To != 0 || got[0].Result == nil || *got[0].Result != "set" {
		t.Errorf("%+v", got)
	}
	awaitWithin(t, soon, "obeyed", func() string {
		if v := w.versionOf("a"); v != 5 {
			return fmt.Sprintf("version %d", v)
		}
		return ""
	})
	await(t, "all consumed", w.arrived)
	p.terminate()
	w.atRest()

	// The position is set forward while no consumer runs. The skipped records must stay skipped,
	// although Kafka's committed offset is older.
	w.produce(euros(0, "b", 4))
	w.produce(euros(0, "c", 2))
	at := time.Now()
	w.set(0, "", "--partition=0", "--offset=9", "--skip-unread", "--reason=poison", "--actor=me", "--yes")
	p = w.start()
	await(t, "all consumed", w.arrived)
	if b, c := w.versionOf("b"), w.versionOf("c"); b != 0 || c != 2 {
		t.Errorf("versions: %d of what was skipped, %d of what comes after it", b, c)
	}
	p.terminate()
	w.atRest() // the offset in Kafka must be the same

	// A later reset of Kafka's offsets takes effect.
	w.rewind()
	p = w.start()
	await(t, "read again", func() string {
		if v := w.versionOf("b"); v != 4 {
			return fmt.Sprintf("version %d", v)
		}
		return ""
	})
	p.terminate()

	// The position of all partitions is set to a point in time.
	pause(t.Context(), time.Until(at.Add(50*time.Millisecond)))
	w.produce(euros(1, "d", 2))
	got := w.set(0, "", "--all", "--time="+at.Add(40*time.Millisecond).Format(time.RFC3339Nano), "--reason=by time", "--actor=me", "--yes")
	if len(got) != 2 || got[0].To != 11 || got[1].To != 0 {
		t.Errorf("%+v", got)
	}
	if log, want := w.audits(), "0 from 5 to 0 me again, 0 from 5 to 9 me poison, 0 from 11 to 11 me by time, 1 from 0 to 0 me by time"; log != want {
		t.Errorf("recorded:\n got %s\nwant %s", log, want)
	}

	// A group that never ran begins at the position that was set.
	status, _, stderr := w.command("position", "set", "--all", "--end", "--skip-unread", "--new-group", "--reason=new", "--yes", "--group="+w.group+"-late")
	if status != 0 {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
}
