package topic

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

const testTopic = "account-events"

func newCluster(t *testing.T, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	return devtest.Fake(t, devstack.FakeOptions{More: opts}).Cluster
}

// The function soon returns a context with a deadline that only a hanging test reaches.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func createTopic(t *testing.T, cluster *kfake.Cluster, partitions int32) {
	t.Helper()
	if _, err := kadm.NewClient(devtest.Client(t, cluster.ListenAddrs())).CreateTopic(soon(t), partitions, 1, nil, testTopic); err != nil {
		t.Fatal(err)
	}
}
