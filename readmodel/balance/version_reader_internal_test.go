package balance

import (
	"testing"
	"testing/synctest"
	"time"

	"projector/readmodel/accounts"
)

func TestAnUnusedIndexIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		query := &versionsQuery{began: 1, done: make(chan struct{}), index: accounts.NewVersionIndex(0)}
		close(query.done)
		r := &VersionReader{current: query, asked: time.Now()}
		time.AfterFunc(keepVersions, func() { r.dropUnused(query) })
		for range 3 {
			<-time.After(keepVersions - time.Second)
			if index, _ := r.since(t.Context(), 0); index == nil {
				t.Fatal("an index that is in use was dropped")
			}
		}
		<-time.After(keepVersions + time.Second)
		if r.held() {
			t.Error("an index that nobody uses is kept")
		}
	})
}

func TestNoQueryOfAllVersionsStartsDuringAClaim(t *testing.T) {
	r := &VersionReader{}
	r.claiming()
	first := r.claimed()
	r.claiming()
	if index, _ := r.since(t.Context(), first); index != nil || r.held() {
		t.Error("a reading began that is of no use to the partition that is being claimed")
	}
	if then := r.claimed(); then <= first {
		t.Errorf("a claim ended at %d, the one before at %d", then, first)
	}
}
