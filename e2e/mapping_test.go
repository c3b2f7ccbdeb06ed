package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"projector/internal/testbank"
)

// addedType returns the mapping with one more event type.
func addedType(mapping string) string {
	return strings.Replace(mapping, "eventTypes:", "eventTypes:\n  CashPaidIn: FundsCredited", 1)
}

// withAddedType writes an event in the layout of the mapping from addedType. Half of the deposits
// have the added type.
func withAddedType(r *testbank.Record, n int, fields map[string]any) {
	renamed(r, n, fields)
	if n%2 == 0 {
		r.Value = []byte(strings.Replace(string(r.Value), `"MoneyDeposited"`, `"CashPaidIn"`, 1))
	}
}

// The method refused returns the partitions that an instance does not claim. The reason is that the
// mapping of the instance differs from the stored mapping.
func (p *program) refused(topic string) (partitions []int32) {
	_, reason := p.get("/readyz")
	if !strings.Contains(reason, "--accept-changed-mapping") {
		return nil
	}
	for _, found := range regexp.MustCompile(regexp.QuoteMeta(topic)+`/(\d+)`).FindAllStringSubmatch(reason, -1) {
		n, err := strconv.ParseInt(found[1], 10, 32)
		if err != nil {
			p.t.Fatal(err)
		}
		partitions = append(partitions, int32(n))
	}
	return partitions
}

// TestRollingUpdateOfAMapping replaces two instances while events arrive. The mapping of the new
// instances has one more event type. During the update an old instance has to claim a partition.
// This partition stops and continues on a new instance. The producer sends the new type when all
// instances are new.
func TestRollingUpdateOfAMapping(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	before, after := filepath.Join(folder, "before.yaml"), filepath.Join(folder, "after.yaml")
	for path, text := range map[string]string{before: otherNames, after: addedType(otherNames)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, 4)
	w.audit()
	w.slowWrites(5 * time.Millisecond)
	records := testbank.Generate(testbank.Options{Seed: seed(t), Records: scaled(9_000), Partitions: w.partitions, Accounts: 300})
	third := len(records) / 3
	old, plain := dialect{write: renamed}.speak(records[:2*third])
	added, last := dialect{write: withAddedType}.speak(records[2*third:])
	plain = append(plain, last...)
	third = len(old) / 2
	feed := func(records []testbank.Record) (finish func()) {
		return w.feed(records, len(records)/100, 40*time.Millisecond)
	}
	launch := func(mapping string) *program {
		p := w.start("--mapping=" + mapping)
		await(t, "the instance has partitions", p.logged("partitions assigned"))
		return p
	}

	finish := feed(old[:third])
	first, second := launch(before), launch(before)
	await(t, "two old instances", w.passed(int64(third/10)))
	early := launch(after)
	await(t, "old and new together", w.passed(int64(third/4)))
	early.terminate()
	stopped := map[int32]int64{}
	look := func() { // a partition may move from one old instance to the other before it is refused
		for _, p := range []*program{first, second} {
			for _, partition := range p.refused(w.topic) {
				if _, known := stopped[partition]; !known {
					stopped[partition] = w.positions()[partition]
				}
			}
		}
	}
	await(t, "an old instance refuses a partition", func() string {
		if look(); len(stopped) == 0 {
			return "both are ready"
		}
		return ""
	})
	finish()
	w.produce(old[third : third+third/4])
	await(t, "the other partitions continue", func() string {
		look()
		positions, ends := w.positions(), w.ends(w.topic)
		maps.DeleteFunc(ends, func(partition int32, end int64) bool {
			_, is := stopped[partition]
			return is || positions[partition] == end
		})
		if len(ends) > 0 {
			return fmt.Sprintf("positions %v, not at their ends %v", positions, ends)
		}
		return ""
	})
	for partition, at := range stopped {
		if now, end := w.positions()[partition], w.ends(w.topic)[partition]; now != at || now >= end {
			t.Errorf("partition %d stopped at %d, is at %d of %d", partition, at, now, end)
		}
	}

	finish = feed(old[third+third/4:])
	early = launch(after)
	first.terminate()
	late := launch(after)
	second.terminate()
	await(t, "the new instances are ready", early.answers("/readyz", 200, ""))
	await(t, "the new instances are ready", late.answers("/readyz", 200, ""))
	finish()

	finish = feed(added)
	await(t, "the added type", w.passed(int64(len(old)+len(added)/3)))
	late.kill()
	w.evict()
	late = launch(after)
	finish()
	w.exact(w.oracleOf(plain), repeated)
	early.terminate()
	late.terminate()
	w.atRest()
	if n := w.audited(); n > 0 {
		t.Errorf("%d writes did not raise the version", n)
	}
}
