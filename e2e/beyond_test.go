package e2e_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// TestEventsBeyondTheParkLimitAreReadAgain closes gaps after which more events wait than may be
// parked. The program must read the events beyond the park limit again without a replay. Another
// account of the partition has a gap that is never closed.
func TestEventsBeyondTheParkLimitAreReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	p := w.start("--park-limit=3", "--breaker-share=0")
	w.append(credits("waits", 2, 9)...)
	w.append(slices.Concat(credits("many", 3, 9), credits("many", 1, 1), credits("other", 1, 5))...)
	doubtful := append(credits("doubtful", 3, 6), credits("doubtful", 8, 8)...)
	w.append(append(credits("doubtful", 1, 1), doubtful...)...)
	await(t, "the gap", w.reads("many", "1 0.01 true 2"))
	await(t, "the other account", w.reads("other", "5 0.05 false"))
	w.append(credits("many", 2, 2)...)
	await(t, "all events of the account", w.reads("many", "9 0.09 false"))
	await(t, "every record consumed", w.arrived)
	for account, want := range map[string]string{"other": "5 0.05 false", "waits": "true 1"} {
		if problem := w.reads(account, want)(); problem != "" {
			t.Error(problem)
		}
	}

	// The event of version 14 is read again and cannot be applied, so it is the next gap.
	usd := credit("many", 14)
	usd.Value = []byte(`{"eventId":"usd","eventType":"FundsCredited","accountId":"many","version":14,"occurredAt":"2026-01-01T00:00:00Z",` +
		`"data":{"amount":"0.01","currency":"USD"}}`)
	w.append(credits("many", 11, 13)...)
	w.append(usd)
	later := credits("many", 15, 21)
	w.append(later...)
	await(t, "every record consumed", w.arrived)
	w.append(credits("many", 10, 10)...)
	await(t, "the event that cannot be applied", w.reads("many", "13 0.13 true 14"))
	await(t, "the events that wait for it", func() string {
		var got string
		err := w.db.QueryRow(t.Context(), `SELECT concat_ws(' ', expected_version, received_version, class, waiting_events, overflowed_events)
			FROM account_hold WHERE account_id = 'many'`).Scan(&got)
		if want := "14 14 currency_mismatch 8 0"; err != nil || got != want {
			return fmt.Sprintf("%q, want %q, error %v", got, want, err)
		}
		return ""
	})
	await(t, "every record consumed", w.arrived)
	env := []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0]}
	// The last event is discarded, so the account is not stale although this event is missing.
	discard := []string{"dlq", "discard", "--topic=" + w.topic, "--group=" + w.group, "--account=many", fmt.Sprint("--offset=", later[6].Offset), "--reason=wrong", "--yes"}
	if status, stdout, stderr := once(t, env, discard...); status != 0 {
		t.Errorf("dlq discard: exit %d: %s%s", status, stdout, stderr)
	}
	skip := []string{"account", "skip", "many", "--version=14", "--reason=another currency", "--yes"}
	await(t, "the skip", func() string {
		if status, _, stderr := once(t, env, skip...); status != 0 {
			return stderr
		}
		return ""
	})
	await(t, "all later events", w.reads("many", "20 0.19 false"))
	// Versions 6 and 8 of this account are discarded one after the other. Only the topic shows that
	// nothing else is beyond the limit.
	for _, beyond := range doubtful[3:] {
		discard[4], discard[5] = "--account=doubtful", fmt.Sprint("--offset=", beyond.Offset)
		if status, stdout, stderr := once(t, env, discard...); status != 0 {
			t.Errorf("dlq discard: exit %d: %s%s", status, stdout, stderr)
		}
	}
	await(t, "nothing beyond the limit", func() string {
		var rows int
		err := w.db.QueryRow(t.Context(), "SELECT count(*) FROM park_overflow WHERE account_id IN ('many', 'doubtful')").Scan(&rows)
		if err != nil || rows != 0 {
			return fmt.Sprintf("%d rows, error %v", rows, err)
		}
		return ""
	})
	await(t, "ready", p.answers("/readyz", 200, ""))
	p.terminate()
}

// TestManyEventsBeyondTheParkLimit closes a gap after which more events wait than the program reads
// again in one step.
func TestManyEventsBeyondTheParkLimit(t *testing.T) {
	t.Parallel()
	const last = 21_000
	w := newWorld(t, 1)
	p := w.start("--park-limit=5", "--breaker-share=0")
	w.append(slices.Concat(credits("many", 1, 1), credits("many", 3, last))...)
	await(t, "every record consumed", w.arrived)
	w.append(credits("many", 2, 2)...)
	await(t, "all events of the account", w.reads("many", fmt.Sprintf("%d %d.%02d false", last, last/100, last%100)))
	p.terminate()
}

// TestEventsBeyondTheParkLimitThatRetentionDeleted expects the partition to continue. The account
// stays stale until its dead letters are replayed.
func TestEventsBeyondTheParkLimitThatRetentionDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	p := w.start("--park-limit=1", "--breaker-share=0")
	w.append(slices.Concat(credits("many", 1, 1), credits("many", 3, 6), credits("other", 1, 1))...)
	await(t, "the gap", w.reads("many", "1 0.01 true 2"))
	await(t, "every record consumed", w.arrived)
	offsets := kadm.Offsets{}
	offsets.AddOffset(w.topic, 0, w.positions()[0], -1)
	if _, err := w.admin.DeleteRecords(t.Context(), offsets); err != nil {
		t.Fatal(err)
	}
	w.append(credits("many", 2, 2)...)
	await(t, "the search for them", func() string {
		var noted bool
		if err := w.db.QueryRow(t.Context(), "SELECT first_offset IS NULL FROM park_overflow WHERE account_id = 'many'").Scan(&noted); err != nil || !noted {
			return fmt.Sprintf("noted %t, error %v", noted, err)
		}
		return ""
	})
	w.append(credits("other", 2, 2)...)
	await(t, "the other account", w.reads("other", "2 0.02 false"))
	await(t, "the parked event", w.reads("many", "3 0.03 true 4"))
	await(t, "ready", p.answers("/readyz", 200, ""))
	env := []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0]}
	if status, _, stderr := once(t, env, "dlq", "replay", "--account=many", "--topic="+w.topic, "--group="+w.group, "--yes"); status != 0 {
		t.Errorf("dlq replay: exit %d: %s", status, stderr)
	}
	await(t, "the replay", w.reads("many", "6 0.06 false"))
	p.terminate()
}

// TestCustomEventsBeyondTheParkLimitAreReadAgain expects an ordered custom projection to read the
// events beyond the park limit again when the gap is closed.
func TestCustomEventsBeyondTheParkLimitAreReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.ownTables()
	p := w.start("--projection-file=../docs/examples/loyalty.sql", "--park-limit=2", "--breaker-share=0")
	for _, version := range []int{1, 3, 4, 5, 6, 7, 8} {
		w.append(earned("a", version, fmt.Sprint(version)))
	}
	await(t, "every record consumed", w.arrived)
	w.append(earned("a", 2, "2"))
	await(t, "each event once", func() string {
		var points, version int
		if err := w.db.QueryRow(t.Context(), "SELECT points, version FROM loyalty").Scan(&points, &version); err != nil || points != 36 || version != 8 {
			return fmt.Sprintf("%d points at version %d, error %v", points, version, err)
		}
		return ""
	})
	p.terminate()
}
