package database_test

import (
	"strings"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

const (
	rowKeys = "id at action group projection topic partition offset dlq_partition dlq_offset account_id version class request_id requested_by actor db_user reason result altered value_sha256 original_sha256 approved_by hash"
	noHash  = "0000000000000000000000000000000000000000000000000000000000000000"
)

// The function trail adds three rows with different times to the audit trail.
func trail(t *testing.T) *clitest.Stage {
	t.Helper()
	s := clitest.NewStage(t)
	s.Exec(`ALTER TABLE dlq_action DISABLE TRIGGER stamp`) // the trigger would set the current time in all rows
	s.Exec(`INSERT INTO dlq_action (at, action, account_id, version, actor, reason, result) VALUES
		(now() - interval '1 day', 'skip', 'acc-a', 2, 'ann', 'lost', 'skipped'),
		('2026-01-31T12:00:00Z', 'discard', 'acc-b', 1, 'ann', 'rubbish', 'discarded'),
		(now(), 'skip', 'acc-b', 1, 'bob', 'lost too', 'skipped')`)
	s.Exec(`ALTER TABLE dlq_action ENABLE TRIGGER stamp`)
	return s
}

func TestAuditFilters(t *testing.T) {
	s := trail(t)
	for name, c := range map[string]struct {
		filter []string
		want   string
	}{
		"all":            {nil, "skip acc-a ann, discard acc-b ann, skip acc-b bob"},
		"account":        {[]string{"--account=acc-b"}, "discard acc-b ann, skip acc-b bob"},
		"action":         {[]string{"--action=skip"}, "skip acc-a ann, skip acc-b bob"},
		"actor":          {[]string{"--actor=ann"}, "skip acc-a ann, discard acc-b ann"},
		"since an age":   {[]string{"--since=2h"}, "skip acc-b bob"},
		"a time to one":  {[]string{"--since=2026-01-31T12:00:00Z", "--until=2026-01-31T12:00:01Z"}, "discard acc-b ann"},
		"until, without": {[]string{"--until=2026-01-31T12:00:00Z"}, ""},
		"together":       {[]string{"--actor=ann", "--action=skip", "--account=acc-a"}, "skip acc-a ann"},
	} {
		if got := clitest.Pick(s.Lines(append([]string{"audit"}, c.filter...)...), "action", "account_id", "actor"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	first, _, _ := strings.Cut(s.Must("audit", "--output=json"), "\n")
	clitest.Equal(t, clitest.Keys(t, first), rowKeys)
	clitest.Contains(t, s.Must("audit"), "ACCOUNT", "rubbish", "bob")
	s.Exec("INSERT INTO dlq_action (action, account_id, actor, reason, result) VALUES ('replay', 'acc-c', 'eve', 'corrected', 'applied in loyalty_points')")
	clitest.Contains(t, strings.Join(strings.Fields(s.Must("audit", "--account=acc-c")), " "), "acc-c - applied eve loyalty_points - - - - - corrected") // a row from before this column existed
	clitest.Contains(t, s.Must("audit", "--actor=nobody"), "nothing was done")
	s.Refused(exit.Usage, "audit", "--since=yesterday")
	s.Refused(exit.Usage, "audit", "--account=")
}

// TestAuditListsAllActors has PROJECTOR_ACTOR set, as a Job in Kubernetes has it. It names who does
// something and is no filter.
func TestAuditListsAllActors(t *testing.T) {
	s := trail(t)
	t.Setenv("PROJECTOR_ACTOR", "ann")
	clitest.Contains(t, s.Must("audit"), "ann", "bob")
	t.Setenv("PROJECTOR_AUDIT_ACTOR", "bob")
	if got := clitest.Pick(s.Lines("audit"), "actor"); got != "bob" {
		t.Errorf("the actors %q, want bob", got)
	}
}

// TestAuditAligns expects that the values of a column begin below its name, although a place and
// the name of a group are long.
func TestAuditAligns(t *testing.T) {
	s := trail(t)
	s.Exec(`INSERT INTO dlq_action (action, consumer_group, projection, topic, partition, "offset", actor, reason, result)
		VALUES ('position_set', 'account-balance-projector', 'account_balance', 'account-events', 0, 80, 'ann', 'typo', 'from 120 to 80')`)
	lines := strings.Split(strings.TrimSpace(s.Must("audit")), "\n")
	at := strings.Index(lines[0], "REASON")
	for i, reason := range []string{"lost", "rubbish", "lost too", "typo"} {
		if got := lines[i+1][min(at, len(lines[i+1])):]; got != reason {
			t.Errorf("below REASON: %q, want %q in\n%s", got, reason, strings.Join(lines, "\n"))
		}
	}
}

func TestAuditVerifyExpectsAHead(t *testing.T) {
	s := trail(t)
	verified := s.Lines("audit", "verify")
	clitest.Equal(t, clitest.Pick(verified, "rows", "ok"), "3 true")
	head, _ := verified[0]["head"].(string)
	s.Must("audit", "verify", "--expect-head="+head)
	clitest.Contains(t, s.Refused(exit.Usage, "audit", "verify", "--expect-head=abc"), "64 digits")

	s.Exec("INSERT INTO dlq_action (action, actor, result) VALUES ('skip', 'ann', 'skipped')")
	s.Must("audit", "verify", "--expect-head="+head) // the head need not be the last row

	_, said := s.Some("audit", "verify", "--expect-head="+noHash)
	clitest.Contains(t, said, "not what was recorded")
	s.Exec("ALTER TABLE dlq_action DISABLE TRIGGER USER")
	s.Exec("DELETE FROM dlq_action WHERE chain >= 3")
	s.Must("audit", "verify") // a chain that has lost its last rows is valid, so only an expected head shows the loss
	lost, _ := s.Some("audit", "verify", "--expect-head="+head)
	clitest.Equal(t, clitest.Pick(lost, "rows", "ok"), "2 false")
	s.Exec("UPDATE dlq_action SET reason = 'other' WHERE chain = 2")
	clitest.Contains(t, s.Refused(exit.Failed, "audit", "verify"), "1 findings")
}
