package accounts

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"projector/projection"
)

func TestTableFindsWhatWasAdded(t *testing.T) {
	table := newTable(maphash.MakeSeed())
	ids := []string{"", "a", strings.Repeat("long", 50)}
	for i := range 20_000 {
		ids = append(ids, fmt.Sprintf("acc-%08d", i))
	}
	for i, id := range ids {
		table.set(table.add(id, table.hash(id)), projection.Account{Version: int64(i), LastEventID: strings.Repeat("e", i%120)})
	}
	for i, id := range ids {
		a := table.get(id, table.hash(id))
		if a == nil || table.idOf(a) != id {
			t.Fatalf("%q is not found", id)
		}
		if s := table.state(a); s.Version != int64(i) || len(s.LastEventID) != i%120 {
			t.Fatalf("%q has version %d and an event id of %d bytes", id, s.Version, len(s.LastEventID))
		}
	}
	if table.get("unknown", table.hash("unknown")) != nil {
		t.Error("an unknown id was found")
	}
	table.drop(table.get("a", table.hash("a")))
	if table.get("a", table.hash("a")) != nil {
		t.Error("a dropped account was found")
	}
	table.set(table.add("a", table.hash("a")), projection.Account{Version: 7})
	if s := table.state(table.get("a", table.hash("a"))); s.Version != 7 {
		t.Errorf("added again it has version %d", s.Version)
	}
}

func TestStateIsKeptWhateverTheEventID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := newTable(maphash.MakeSeed())
		a := table.add("a", table.hash("a"))
		for range rapid.IntRange(1, 5).Draw(t, "changes") {
			want := projection.Account{
				Version:     rapid.Int64().Draw(t, "version"),
				Balance:     rapid.Int64().Draw(t, "balance"),
				Closed:      rapid.Bool().Draw(t, "closed"),
				LastEventID: rapid.StringN(0, 200, 200).Draw(t, "event id"),
				LastEventAt: rapid.Int64().Draw(t, "time"),
			}
			table.set(a, want)
			if got := table.state(a); got != want {
				t.Fatalf("%+v, want %+v", got, want)
			}
		}
	})
}

func TestTurnedCacheRemembersAndThenForgets(t *testing.T) {
	c := newCache()
	c.hot.set(c.hot.add("kept", c.hash("kept")), projection.Account{Version: 1})
	c.hot.set(c.hot.add("idle", c.hash("idle")), projection.Account{Version: 2})
	c.turn()
	if a := c.get("kept", c.hash("kept")); a == nil || a.version != 1 {
		t.Fatal("forgotten after one turn")
	}
	c.turn()
	if c.get("kept", c.hash("kept")) == nil {
		t.Error("forgotten though it was used")
	}
	if c.get("idle", c.hash("idle")) != nil {
		t.Error("remembered though it was idle for two turns")
	}
}

// The event id of a record points into the memory of a whole fetch. The id in the table must be a
// copy, so that this memory can be freed.
func TestWhatIsRememberedIsCopied(t *testing.T) {
	table := newTable(maphash.MakeSeed())
	id := strings.Repeat("e", mostRoom+1)
	a := table.add("a", table.hash("a"))
	table.set(a, projection.Account{LastEventID: id})
	if kept := table.state(a).LastEventID; kept != id || unsafe.StringData(kept) == unsafe.StringData(id) { //nolint:gosec // compares addresses only
		t.Error("the last event id is a view of the record it came in")
	}
}
