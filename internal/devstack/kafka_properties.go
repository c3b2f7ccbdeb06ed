package devstack

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// minSession, in ms, lets a test see the session of a dead member end while it waits.
const minSession = "1000"

// writeProperties writes the server.properties of every node.
func (k *Kafka) writeProperties() error {
	for _, node := range k.nodes {
		if err := os.MkdirAll(node.dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(node.properties(), k.properties(node), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// properties are the settings of one node, as the text of a properties file.
// Internal topics are small and replicated as far as the cluster goes: with
// three brokers one may fail and nothing acknowledged is lost. Nothing is
// created by use, and a group does not wait for members that may come. A killed
// node may come back when its session has run out, which is sooner than usual.
func (k *Kafka) properties(node *kafkaNode) []byte {
	replicas := fmt.Sprint(len(k.nodes))
	inSync := fmt.Sprint((len(k.nodes) + 1) / 2)
	lines := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        fmt.Sprint(node.id),
		"controller.quorum.voters":       k.voters(),
		"controller.listener.names":      "CONTROLLER",
		"listeners":                      "PLAINTEXT://" + address(node.port) + ",CONTROLLER://" + address(node.controllerPort),
		"advertised.listeners":           "PLAINTEXT://" + address(node.port),
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs":                       node.dataDir(),

		"auto.create.topics.enable":        "false",
		"group.initial.rebalance.delay.ms": "0",
		"group.min.session.timeout.ms":     minSession,
		"broker.session.timeout.ms":        "6000",
		"broker.heartbeat.interval.ms":     "500",
		"num.partitions":                   "1",
		"default.replication.factor":       replicas,
		"min.insync.replicas":              inSync,

		"offsets.topic.num.partitions":                     "3",
		"offsets.topic.replication.factor":                 replicas,
		"transaction.state.log.num.partitions":             "3",
		"transaction.state.log.replication.factor":         replicas,
		"transaction.state.log.min.isr":                    inSync,
		"share.coordinator.state.topic.num.partitions":     "3",
		"share.coordinator.state.topic.replication.factor": replicas,
		"share.coordinator.state.topic.min.isr":            inSync,
	}
	k.secure(lines, node)
	maps.Copy(lines, k.settings)
	return propertiesFile(lines)
}

// propertiesFile is the text of a Java properties file, sorted by name.
func propertiesFile(lines map[string]string) []byte {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&text, "%s=%s\n", name, strings.ReplaceAll(lines[name], `\`, `\\`))
	}
	return []byte(text.String())
}

// voters lists the controllers: id@host:port, joined by commas.
func (k *Kafka) voters() string {
	voters := make([]string, len(k.nodes))
	for i, node := range k.nodes {
		voters[i] = fmt.Sprintf("%d@%s", node.id, address(node.controllerPort))
	}
	return strings.Join(voters, ",")
}
