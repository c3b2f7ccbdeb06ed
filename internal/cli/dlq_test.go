package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

// holes produces what leaves dead letters of many kinds: a gap in acc-a, a poison
// first event of acc-b, something unreadable, and a conflict.
func (s *stage) holes() {
	s.t.Helper()
	s.produce(
		eventOf("acc-a", 1, `"10.25"`), eventOf("acc-a", 3, `"4"`), eventOf("acc-a", 4, `"8"`), eventOf("acc-a", 6, `"32"`),
		eventOf("acc-b", 1, `7.5`), eventOf("acc-b", 2, `"1"`),
		`secret`,
		strings.Replace(eventOf("acc-a", 1, `"1"`), "acc-a-1", "another", 1),
	)
	s.consuming(nil)
}

const (
	listKeys = "dlq_partition dlq_offset class status account_id event_id expected_version received_version " +
		"topic partition offset failed_at replays message"
	statusFields = "account_id received_version status"
)

func statuses(lines []map[string]any) string { return pick(lines, strings.Fields(statusFields)...) }

func TestListShowsHowDeadLettersStand(t *testing.T) {
	s := newStage(t)
	if out := s.must("dlq", "list"); out != "no dead letters\n" {
		t.Errorf("without a DLQ topic: %q", out)
	}
	s.holes()

	equal(t, statuses(s.lines("dlq", "list")),
		"acc-a 3 waiting, acc-a 4 waiting, acc-a 6 waiting, acc-b 1 open, acc-b 2 waiting, null null open, acc-a 1 open")
	equal(t, pick(s.lines("dlq", "list", "--class=malformed_payload"), "class", "expected_version", "event_id", "topic", "offset", "replays"),
		"malformed_payload 1 acc-b-1 "+s.topic+" 4 0, malformed_payload null null "+s.topic+" 6 0")
	first, _, _ := strings.Cut(s.must("dlq", "list", "--output=json"), "\n")
	equal(t, keys(t, first), listKeys)

	for filter, want := range map[string]string{
		"--account=acc-b":                            "acc-b 1 open, acc-b 2 waiting",
		"--status=open":                              "acc-b 1 open, null null open, acc-a 1 open",
		"--class=version_gap,version_conflict":       "acc-a 3 waiting, acc-a 4 waiting, acc-a 6 waiting, acc-b 2 waiting, acc-a 1 open",
		"--offset=2":                                 "acc-a 4 waiting",
		"--partition=7":                              "",
		"--dlq-offset=0 --dlq-partition=0":           "acc-a 3 waiting",
		"--dlq-offset=99 --dlq-partition=0,5":        "",
		"--since=1h --until=2999-01-01T00:00:00Z":    "acc-a 3 waiting, acc-a 4 waiting, acc-a 6 waiting, acc-b 1 open, acc-b 2 waiting, null null open, acc-a 1 open",
		"--until=1h":                                 "",
		"--account=acc-a --class=version_gap":        "acc-a 3 waiting, acc-a 4 waiting, acc-a 6 waiting",
		"--status=ready,resolved --status=discarded": "",
	} {
		equal(t, statuses(s.lines(append([]string{"dlq", "list"}, strings.Fields(filter)...)...)), want)
	}
	table := s.must("dlq", "list")
	contains(t, table, "STATUS", "acc-a", "version_gap", "0/3", "open")
	for line := range strings.Lines(table) {
		if len([]rune(line)) > 81 {
			t.Errorf("line of %d characters: %s", len(line), line)
		}
	}

	s.produce(eventOf("acc-a", 2, `"2"`)) // the producer fills the hole late; nobody types anything
	s.consuming(func() { s.await("SELECT version = 4 FROM account_balance WHERE account_id = 'acc-a'") })
	equal(t, statuses(s.lines("dlq", "list", "--account=acc-a", "--class=version_gap")),
		"acc-a 3 resolved, acc-a 4 resolved, acc-a 6 waiting")
}

var clockTime = regexp.MustCompile(`T[0-9:.]+Z`)

func TestShowMasksUnlessAsked(t *testing.T) {
	s := newStage(t)
	s.holes()
	text := s.must("dlq", "show", "0/0")
	contains(t, text, "version_gap", "__projector.errors.class", "acc-a-3", "FundsCredited", "waits for version 2", "***")
	untimed := clockTime.ReplaceAllString(text, "") // 20:29:04.00 is not an amount
	for _, secret := range []string{"4.00", `"4"`, "10.25"} {
		if strings.Contains(untimed, secret) {
			t.Errorf("%s is shown\n%s", secret, text)
		}
	}
	contains(t, s.must("dlq", "show", "0/0", "--show-payload"), "4.00", "10.25", `"amount":"4"`)
	equal(t, keys(t, s.must("dlq", "show", "0/0", "--output=json")), listKeys+" headers key")
	equal(t, keys(t, s.must("dlq", "show", "0/0", "--output=json", "--show-payload")), listKeys+" headers key value")
	contains(t, s.must("dlq", "show", "0/5"), "cannot be applied")
	contains(t, s.refused(exitFailed, "dlq", "show", "0/99"), "no record at partition 0, offset 99")
	contains(t, s.refused(exitUsage, "dlq", "show", "x"), "partition/offset")
}

func TestAccountsAndGaps(t *testing.T) {
	s := newStage(t)
	s.holes()
	equal(t, s.must("account", "show", "acc-a", "--output=json"),
		`{"account_id":"acc-a","currency":"EUR","balance":10.25,"version":1,"status":"open","stale":true,"waiting_for_version":2,`+
			`"last_event_id":"acc-a-1","last_event_at":"2026-01-01T00:00:00.5Z","parked":[`+
			`{"version":3,"class":"version_gap","event_id":"acc-a-3","topic":"`+s.topic+`","partition":0,"offset":1},`+
			`{"version":4,"class":"version_gap","event_id":"acc-a-4","topic":"`+s.topic+`","partition":0,"offset":2},`+
			`{"version":6,"class":"version_gap","event_id":"acc-a-6","topic":"`+s.topic+`","partition":0,"offset":3}]}`+"\n")
	contains(t, s.must("account", "show", "acc-b", "--output=json"),
		`{"account_id":"acc-b","currency":null,"balance":null,"version":null,"status":null,"stale":true,"waiting_for_version":1,"last_event_id":null`)
	contains(t, s.must("account", "show", "acc-a"), "10.25 EUR", "waits for version 2", "acc-a-6")
	contains(t, s.refused(exitFailed, "account", "show", "nobody"), `"nobody" is unknown`)

	gaps := s.lines("gaps")
	equal(t, pick(gaps, "account_id", "expected_version", "received_version", "class", "waiting_events"),
		"acc-a 2 3 version_gap 3, acc-b 1 1 malformed_payload 2")
	first, _, _ := strings.Cut(s.must("gaps", "--output=json"), "\n")
	equal(t, keys(t, first), "account_id expected_version received_version class waiting_events since age_seconds")
	contains(t, s.must("gaps"), "ACCOUNT", "acc-b", "malformed_payload")
}

func TestAPoisonEventIsCorrectedByFile(t *testing.T) {
	s := newStage(t)
	s.holes()
	file := filepath.Join(t.TempDir(), "dead.jsonl")
	contains(t, s.must("dlq", "export", "--file="+file, "--account=acc-b"), "exported 2 dead letters")
	contains(t, s.refused(exitUsage, "dlq", "export", "--file="+file), "exists already")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, s.must("dlq", "export", "--account=acc-b", "--output=json"), string(text)) // without a file, to standard output
	edited := strings.Replace(string(text), `\"amount\":7.5`, `\"amount\":\"7.5\"`, 1)
	if edited == string(text) {
		t.Fatalf("nothing to correct in\n%s", text)
	}
	if err := os.WriteFile(file, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}

	replay := []string{"dlq", "replay", "--from-file=" + file}
	equal(t, pick(s.lines(replay...), "account_id", "expected_version", "received_version", "status", "plan"),
		"acc-b 1 1 ready will_apply, acc-b 1 2 waiting will_apply")
	contains(t, s.must(replay...), "2 will_apply; nothing was changed")
	contains(t, s.must("account", "show", "acc-b"), "first version is missing")

	equal(t, pick(s.lines(append(replay, "--yes")...), "plan", "result"), "will_apply applied, will_apply applied")
	contains(t, s.must("account", "show", "acc-b", "--output=json"), `"balance":8.50,"version":2`, `"stale":false`, `"parked":[]`)
	equal(t, statuses(s.lines("dlq", "list", "--account=acc-b")), "acc-b 1 resolved, acc-b 2 resolved")
	equal(t, pick(s.lines(append(replay, "--yes")...), "plan", "result"), "duplicate duplicate, duplicate duplicate")

	if err := os.WriteFile(file, []byte(edited+`{"topic":`), 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, s.refused(exitUsage, replay...), "line 3")
}

func TestReplayPlansAndApplies(t *testing.T) {
	s := newStage(t)
	s.holes()
	const plan = "null null poison, acc-a 1 poison, acc-a 3 waiting, acc-a 4 waiting, acc-a 6 waiting, acc-b 1 poison, acc-b 2 waiting"
	lines := s.lines("dlq", "replay")
	equal(t, pick(lines, "account_id", "received_version", "plan"), plan)
	first, _, _ := strings.Cut(s.must("dlq", "replay", "--output=json"), "\n")
	equal(t, keys(t, first), listKeys+" plan")
	first, _, _ = strings.Cut(s.must("dlq", "replay", "--output=json", "--yes", "--limit=1"), "\n")
	equal(t, keys(t, first), listKeys+" plan result")

	equal(t, pick(s.lines("dlq", "replay", "--yes"), "result"), "poison, poison, waiting, waiting, waiting, poison, waiting")
	s.must("account", "skip", "acc-a", "--version=2", "--reason=lost", "--yes")
	equal(t, pick(s.lines("dlq", "replay", "--account=acc-a", "--yes"), "received_version", "result"),
		"1 poison, 3 duplicate, 4 duplicate, 6 waiting")
	equal(t, pick(s.lines("dlq", "list", "--account=acc-a", "--dlq-offset=2"), "replays"), "2")
	contains(t, s.must("dlq", "replay", "--account=acc-a", "--yes", "--max-replays=2"), "refused")
	equal(t, pick(s.lines("dlq", "replay", "--limit=2"), "plan"), "poison, poison")
	contains(t, s.refused(exitUsage, "dlq", "replay", "--class=nonsense"), "nonsense")
	contains(t, s.refused(exitUsage, "dlq", "list", "--since=yesterday"), "--since")
}

func TestReplayFillsAHoleTheConsumerCouldNot(t *testing.T) {
	s := newStage(t)
	// Beyond the park limit events are in the DLQ only.
	s.produce(eventOf("acc", 2, `"2"`), eventOf("acc", 3, `"4"`), eventOf("acc", 4, `"8"`), eventOf("acc", 5, `"16"`))
	t.Setenv("PARK_LIMIT", "2")
	s.consuming(nil)
	contains(t, s.must("account", "show", "acc"), "2 of them are beyond the park limit")
	s.produce(eventOf("acc", 1, `"1"`))
	s.consuming(func() {
		s.await("SELECT coalesce(max(version) = 3, false) FROM account_balance")
		equal(t, statuses(s.lines("dlq", "list")), "acc 2 resolved, acc 3 resolved, acc 4 ready, acc 5 waiting")
		equal(t, pick(s.lines("dlq", "replay", "--yes"), "plan", "result"),
			"duplicate duplicate, duplicate duplicate, will_apply applied, will_apply applied")
	})
	contains(t, s.must("account", "show", "acc", "--output=json"), `"balance":31.00,"version":5`, `"stale":false`)
}

func TestReplayToATopicRaisesTheCount(t *testing.T) {
	s := newStage(t)
	s.holes()
	s.must("migrate")
	args := []string{"dlq", "replay", "--to-topic=" + s.topic, "--account=acc-b"}
	equal(t, pick(s.lines(append(args, "--yes")...), "result"), "published, published")
	s.produced += 2
	s.consuming(nil)
	equal(t, pick(s.lines("dlq", "list", "--account=acc-b"), "received_version", "offset", "replays"),
		"1 4 1, 2 5 1, 1 8 1, 2 9 1")
	contains(t, s.must(append(args, "--yes", "--max-replays=1")...), "refused")
	contains(t, s.refused(exitUsage, "dlq", "replay", "--to-topic="+s.topic+".dlq"), "must not be the DLQ topic")
}

func TestDiscardIsOnRecordAndUndoesNothing(t *testing.T) {
	s := newStage(t)
	s.holes()
	args := []string{"dlq", "discard", "--reason=known", "--class=version_conflict"}
	contains(t, s.must(args...), "1 dead letters would be discarded; nothing was changed")
	equal(t, statuses(s.lines("dlq", "list", "--status=discarded")), "")
	equal(t, pick(s.lines(append(args, "--yes", "--actor=auditor")...), "status", "result"), "discarded discarded")
	equal(t, statuses(s.lines("dlq", "list", "--status=discarded")), "acc-a 1 discarded")
	contains(t, s.must(args...), "nothing to discard")
	equal(t, pick(s.lines("dlq", "replay", "--class=version_conflict"), "plan"), "")
	s.refused(exitUsage, "dlq", "discard", "--yes")
	var record string
	err := s.pool.QueryRow(t.Context(), `SELECT concat_ws(' ', action, account_id, version, class, dlq_partition, dlq_offset, actor, reason, result, topic, "offset") FROM dlq_action`).Scan(&record)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, record, "discard acc-a 1 version_conflict 0 6 auditor known discarded "+s.topic+" 7")
}

// What could not be recorded was not discarded, and is not said to be.
func TestADiscardThatCannotBeRecordedIsNone(t *testing.T) {
	s := newStage(t)
	for version := 2; version < 22; version++ { // more than is printed at a time
		s.produce(eventOf("acc", version, `"1"`))
	}
	s.consuming(nil)
	s.exec(`ALTER TABLE dlq_action ADD CONSTRAINT closed CHECK (action <> 'discard')`)
	for _, output := range []string{"json", "text"} {
		status, out, _ := s.command("dlq", "discard", "--reason=known", "--yes", "--output="+output)
		if status != exitFailed || out != "" {
			t.Errorf("status %d, and said:\n%s", status, out)
		}
	}
}

func TestAccountSkip(t *testing.T) {
	s := newStage(t)
	s.holes()
	skip := func(version string, more ...string) []string {
		return append([]string{"account", "skip", "acc-a", "--version=" + version, "--reason=lost"}, more...)
	}
	contains(t, s.refused(exitFailed, skip("3", "--yes")...), "expects version 2, not 3")
	contains(t, s.refused(exitFailed, skip("1")...), "expects version 2, not 1")
	contains(t, s.must(skip("2")...), "nothing was changed, add --yes")
	equal(t, s.must(skip("2", "--yes", "--output=json")...),
		`{"account_id":"acc-a","version":2,"event_id":null,"healed_events":2,"result":"skipped"}`+"\n")
	contains(t, s.must("account", "show", "acc-a", "--output=json"), `"balance":22.25,"version":4`, `"waiting_for_version":5`)
	contains(t, s.refused(exitFailed, skip("2", "--yes")...), "expects version 5, not 2")
	s.refused(exitUsage, "account", "skip", "acc-a", "--version=5")
}

func TestOneShotsFailWhenAServerIsAway(t *testing.T) {
	s := newStage(t)
	gone := *s
	gone.url = "postgres://nobody@127.0.0.1:1/none"
	for _, args := range [][]string{{"dlq", "list"}, {"account", "show", "a"}, {"gaps"}} {
		contains(t, gone.refused(exitFailed, args...), "reach PostgreSQL")
	}
	gone = *s
	gone.addrs = []string{"127.0.0.1:1"}
	contains(t, gone.refused(exitFailed, "dlq", "list"), "reach Kafka")
}

// What was published before an interrupt is in the topic, so it is in the audit trail.
func TestAnInterruptedReplayToATopicIsOnRecord(t *testing.T) {
	fake := devtest.Fake(t, devstack.FakeOptions{})
	s := stageOn(t, fake.Addrs())
	s.holes()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var taken atomic.Int32
	fake.Cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		taken.Add(1)
		interrupt() // while the record is on its way: it is taken all the same
		return nil, nil, false
	})
	args := s.servers([]string{"dlq", "replay", "--to-topic=" + s.topic, "--account=acc-b", "--limit=1", "--yes"})
	status := execute(ctx, args, &bytes.Buffer{}, &bytes.Buffer{})
	var recorded int32
	if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM dlq_action WHERE result = 'published'").Scan(&recorded); err != nil {
		t.Fatal(err)
	}
	if taken.Load() != 1 || recorded != 1 {
		t.Errorf("status %d: %d records were taken, %d are on record", status, taken.Load(), recorded)
	}
}
