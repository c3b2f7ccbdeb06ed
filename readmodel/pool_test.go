package readmodel_test

import (
	"strings"
	"testing"

	"projector/internal/devstack/devtest"
	"projector/readmodel"
)

func TestTheURLBoundsThePool(t *testing.T) {
	for query, want := range map[string]int32{"": 10, "?pool_max_conns=4": 4, "?pool_max_conns=25&sslmode=disable": 25} {
		pool, err := readmodel.OpenPool(t.Context(), "postgres://nobody@127.0.0.1:1/none"+query)
		if err != nil {
			t.Fatal(err)
		}
		if got := pool.Config().MaxConns; got != want {
			t.Errorf("%q: %d connections, want %d", query, got, want)
		}
		pool.Close()
	}
	if _, err := readmodel.OpenPool(t.Context(), "postgres://nobody@127.0.0.1:1/none?pool_max_conns=3"); err == nil ||
		!strings.Contains(err.Error(), "pool_max_conns") {
		t.Errorf("3 connections: %v", err)
	}
}

func TestTheURLHasTheLastWordOnASession(t *testing.T) {
	t.Parallel()
	url := devtest.Database(t)
	for query, want := range map[string]string{"": "off force_generic_plan off", "&jit=on&plan_cache_mode=auto&enable_seqscan=on": "on auto on"} {
		var got string
		if err := openPoolAt(t, url+query).QueryRow(t.Context(), `
			SELECT concat_ws(' ', current_setting('jit'), current_setting('plan_cache_mode'), current_setting('enable_seqscan'))`).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%q: jit, plan_cache_mode and enable_seqscan are %s, want %s", query, got, want)
		}
	}
}
