package main

import (
	"fmt"
	"testing"

	"projector/projection/event"
)

func small(s shape, held int32) *workload {
	return &workload{name: "small", accounts: 50, events: 2000, shape: s, held: held}
}

func TestProjectorAcceptsEveryGeneratedEvent(t *testing.T) {
	format := event.NewJSON(event.Options{FirstVersion: 1})
	for _, s := range []shape{uniform, zipf} {
		w := small(s, 0)
		g := newGenerator(w)
		versions := map[string]int64{}
		var c change
		var d event.Decoded
		for range w.events {
			g.next(&c)
			r := record(&c)
			format.Decode(event.Message{Key: r.Key, Value: r.Value}, &d)
			if d.Fault != nil || d.Identity != event.Identified {
				t.Fatalf("%s: %v", r.Value, d.Fault)
			}
			id := d.Event.AccountID
			if id != string(r.Key) || id != accountID(c.account) {
				t.Fatalf("account %s under key %s", id, r.Key)
			}
			if versions[id]++; d.Event.Version != versions[id] {
				t.Fatalf("%s: version %d after %d", id, d.Event.Version, versions[id]-1)
			}
		}
	}
}

func TestOnceTouchesEveryAccountOnce(t *testing.T) {
	w := workload{name: "cold", events: 5000, shape: once}.scaled(1)
	g := newGenerator(&w)
	var c change
	for range w.events {
		g.next(&c)
	}
	for n, version := range g.versions {
		if version != 1 {
			t.Fatalf("account %d has version %d", n, version)
		}
	}
}

func TestTheFingerprintDetectsSwappedAccounts(t *testing.T) {
	g := newGenerator(small(uniform, 0))
	var c change
	for range 100 {
		g.next(&c)
	}
	g.balances[3], g.balances[4] = 10, 20
	before := g.fingerprint()
	g.balances[3], g.balances[4] = 20, 10
	if g.fingerprint() == before {
		t.Error("two accounts may swap their balances unseen")
	}
}

func TestRawBatchesHoldEveryEventInOrder(t *testing.T) {
	for _, held := range []int32{0, 1} {
		w := small(uniform, held) // far fewer accounts than a batch has rows
		next := map[string]int64{}
		rows := 0
		for _, lane := range rawBatches(w) {
			for _, args := range lane {
				ids, versions := args[0].([]string), args[4].([]int64)
				if len(ids) > rawRows {
					t.Fatalf("a batch of %d rows", len(ids))
				}
				for i, id := range ids {
					if i > 0 && ids[i-1] >= id {
						t.Fatalf("%s before %s in a batch", ids[i-1], id)
					}
					if next[id] == 0 {
						next[id] = int64(w.firstVersion())
					}
					if versions[i] != next[id] {
						t.Fatalf("%s: version %d, want %d", id, versions[i], next[id])
					}
					next[id]++
					rows++
				}
			}
		}
		if rows != w.events {
			t.Errorf("%d rows of %d events", rows, w.events)
		}
	}
}

func TestScaleKeepsWhatAWorkloadIsAbout(t *testing.T) {
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) {
			s := w.scaled(0.1)
			switch {
			case w.fixed && s.accounts != w.accounts:
				t.Errorf("%d accounts, want %d", s.accounts, w.accounts)
			case !w.fixed && fmt.Sprintf("%.2f", float64(s.events)/float64(s.accounts)) !=
				fmt.Sprintf("%.2f", float64(w.events)/float64(w.accounts)):
				t.Errorf("%d events of %d accounts", s.events, s.accounts)
			}
		})
	}
}
