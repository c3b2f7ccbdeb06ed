package devstack

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// FakeOptions configures an in-process broker. The zero value is one broker with all data in
// memory.
type FakeOptions struct {
	// Brokers is the number of brokers. Zero means 1.
	Brokers int
	// Topics are created at the start. The value is the number of partitions.
	Topics map[string]int32
	// Settings are broker configs, such as "message.max.bytes".
	Settings map[string]string
	// Dir is the folder in which topics and groups survive a restart. If Dir is empty, they are in
	// memory.
	Dir string
	// Log receives warnings of the broker. Nil discards them.
	Log io.Writer
	// More has other options of kfake, such as SASL, TLS, ACLs, ports and versions.
	More []kfake.Opt
}

// Fake is a Kafka cluster inside this process. It has no replication and no quotas. Tests use the
// field Cluster to set faults and control functions.
type Fake struct {
	Cluster *kfake.Cluster
	addrs   []string
}

// StartFake starts the brokers. They accept requests when StartFake returns. Topics are not created
// automatically, as in a production cluster.
func StartFake(_ context.Context, options FakeOptions) (*Fake, error) {
	cluster, err := kfake.NewCluster(options.kfake()...)
	if err != nil {
		return nil, fmt.Errorf("start in-process broker: %w", err)
	}
	return &Fake{Cluster: cluster, addrs: cluster.ListenAddrs()}, nil
}

func (o FakeOptions) kfake() []kfake.Opt {
	brokers := max(o.Brokers, 1)
	settings := map[string]string{
		"default.replication.factor":   strconv.Itoa(min(brokers, 3)),
		"group.min.session.timeout.ms": minSession,
	}
	maps.Copy(settings, o.Settings)
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(kmsg.CreateTopics.Int16(), 4) // newer versions: kfake's answer contains configs that kafka-topics.sh cannot read
	options := []kfake.Opt{kfake.MaxVersions(versions), kfake.NumBrokers(brokers), kfake.DefaultNumPartitions(1), kfake.BrokerConfigs(settings)}
	for _, topic := range slices.Sorted(maps.Keys(o.Topics)) {
		options = append(options, kfake.SeedTopics(o.Topics[topic], topic))
	}
	if o.Dir != "" {
		options = append(options, kfake.DataDir(o.Dir))
	}
	if o.Log != nil {
		options = append(options, kfake.WithLogger(kfake.BasicLogger(serverLog(o.Log), kfake.LogLevelWarn)))
	}
	return append(options, o.More...)
}

// Addrs returns the brokers' addresses, host:port.
func (f *Fake) Addrs() []string { return slices.Clone(f.addrs) }

// Close ends the brokers. If Dir is set, it stores their data first.
func (f *Fake) Close(context.Context) error {
	f.Cluster.Close()
	return nil
}
