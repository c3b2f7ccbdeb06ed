package accountdb_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"projector/projection"
	"projector/readmodel/accountdb"
	"projector/readmodel/balance"
	"projector/readmodel/readmodeltest"
)

func TestMissingVersions(t *testing.T) {
	pool := openPool(t)
	w := readmodeltest.NewWorkerWith(t, pool, partition, func(cfg *balance.Config) { cfg.ParkLimit = 2 })
	w.MustClaim("me", projection.NoOffset)
	w.MustFold(
		credit("a", 1, "1", "EUR"), credit("a", 5, "1", "EUR"), credit("a", 7, "1", "EUR"), // 2 to 4 and 6 are missing
		credit("b", 3, "1", "EUR"),                             // no event of b was applied
		credit("c", 1, "x", "EUR"), credit("c", 2, "1", "EUR"), // the next event is parked and cannot be applied
		credit("d", 1, "1", "EUR"), credit("d", 2, "1", "EUR"), // no event is missing
	)
	w.MustFlush()
	if _, err := pool.Exec(t.Context(), `INSERT INTO park_overflow (account_id, lowest_version, highest_version, events, expected_version)
		VALUES ('e', 4, 9, 2, 3)`); err != nil { // all events are beyond the park limit
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		filter accountdb.MissingFilter
		want   string
	}{
		"all":                {accountdb.MissingFilter{}, "a 2-4, b 1-2, e 3-9"},
		"an account":         {accountdb.MissingFilter{AccountID: "b"}, "b 1-2"},
		"not that long":      {accountdb.MissingFilter{For: time.Hour}, ""},
		"the partition":      {accountdb.MissingFilter{Topic: partition.Topic, Partitions: []int32{partition.Number, 0}}, "a 2-4, b 1-2, e 3-9"},
		"another partition":  {accountdb.MissingFilter{Topic: partition.Topic, Partitions: []int32{partition.Number + 1}}, ""},
		"of another topic":   {accountdb.MissingFilter{Topic: "another", Partitions: []int32{partition.Number, 0}}, "e 3-9"},
		"of no partition":    {accountdb.MissingFilter{Topic: partition.Topic}, ""},
		"partition 0, alone": {accountdb.MissingFilter{Topic: "another", Partitions: []int32{0}}, "e 3-9"},
	} {
		var got []string
		for m, err := range accountdb.MissingVersions(t.Context(), pool, c.filter) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprintf("%s %d-%d", m.AccountID, m.First, m.Last))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
	for _, err := range accountdb.MissingVersions(t.Context(), pool, accountdb.MissingFilter{}) {
		if err != nil {
			t.Error(err)
		}
		break // no gap is left
	}
	if _, err := pool.Exec(t.Context(), "UPDATE parked_event SET parked_at = now() + interval '3 days'"); err != nil {
		t.Fatal(err)
	}
	found := 0
	for m, err := range accountdb.MissingVersions(t.Context(), pool, accountdb.MissingFilter{AccountID: "a", For: time.Hour}) {
		if found++; m.First != 2 || err != nil {
			t.Errorf("after the clock was set back: %+v, %v", m, err)
		}
	}
	if found != 1 {
		t.Errorf("after the clock was set back: %d gaps, want 1", found)
	}
}

func TestVersionsOfAGap(t *testing.T) {
	const last = projection.LastVersion
	for m, want := range map[accountdb.Missing]int{{First: 2, Last: 2}: 1, {First: 2, Last: 4}: 3, {First: last - 1, Last: last}: 2} {
		got := slices.Collect(m.Versions())
		if len(got) != want || got[0] != m.First || got[len(got)-1] != m.Last {
			t.Errorf("%d to %d: %v", m.First, m.Last, got)
		}
	}
}
