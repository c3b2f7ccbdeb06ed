package devstack

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// addNodes adds n nodes, each with a folder and no ports yet.
func (k *Kafka) addNodes(n int) {
	for id := 1; id <= n; id++ {
		k.nodes = append(k.nodes, &kafkaNode{id: id, dir: filepath.Join(k.dir, "node"+strconv.Itoa(id))})
	}
}

// assignPorts gives every node new ports and writes the properties of all nodes, because each file
// names the ports of the other nodes.
func (k *Kafka) assignPorts() error {
	const each = 4 // the ports for SASL and TLS are used with KafkaSecurity only
	ports, err := freePorts(each * len(k.nodes))
	if err != nil {
		return err
	}
	for i, node := range k.nodes {
		p := ports[each*i:]
		node.port, node.controllerPort, node.saslPort, node.tlsPort = p[0], p[1], p[2], p[3]
	}
	return k.writeProperties()
}

// format formats the storage of all nodes with the id of the cluster.
func (k *Kafka) format(ctx context.Context) error {
	id := newClusterID()
	if err := k.assignPorts(); err != nil {
		return err
	}
	failures := make([]error, len(k.nodes))
	if k.bootstrap != "" {
		for i, node := range k.nodes {
			failures[i] = k.placeFormat(node, id)
		}
		return errors.Join(failures...)
	}
	var formatted sync.WaitGroup
	for i, node := range k.nodes {
		formatted.Go(func() { failures[i] = k.formatNode(ctx, node, id) })
	}
	formatted.Wait()
	return errors.Join(failures...)
}

func (k *Kafka) formatNode(ctx context.Context, node *kafkaNode, clusterID string) error {
	output, err := k.javaCommand(ctx, "kafka.tools.StorageTool", "format",
		"-t", clusterID, "-c", node.properties()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("format storage of node %d: %w: %s", node.id, err, bytes.TrimSpace(output))
	}
	return nil
}

// newClusterID returns a random id of 16 bytes in base64.
func newClusterID() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never fails
	raw[0] &= 0x7f        // Kafka refuses an id that begins with a dash
	return base64.RawURLEncoding.EncodeToString(raw)
}

// javaCommand runs a Kafka class with its warnings on stderr. It filters out the warnings of
// Kafka's network client, because every start logs hundreds of warnings about peers that have not
// started yet.
func (k *Kafka) javaCommand(ctx context.Context, class string, args ...string) *exec.Cmd {
	full := []string{
		"-cp", filepath.Join(k.lib, "*"), "-XX:+UseSerialGC", "-Xmx512m",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"-Dorg.slf4j.simpleLogger.log.org.apache.kafka.clients.NetworkClient=error",
	}
	if !k.forLoad {
		full = append(full, quickStart)
	}
	if k.classesOption != "" {
		full = append(full, k.classesOption)
	}
	cmd := exec.CommandContext(ctx, k.java, append(append(full, class), args...)...)
	cmd.Dir = k.dir
	return cmd
}

// launch starts the server of a node without waiting for it.
func (k *Kafka) launch(node *kafkaNode) error {
	server, err := startProcess(
		k.javaCommand(context.Background(), "kafka.Kafka", node.properties()), syscall.SIGKILL, k.log)
	if err == nil {
		node.server = server
	}
	return err
}

func (n *kafkaNode) dataDir() string    { return filepath.Join(n.dir, "data") }
func (n *kafkaNode) properties() string { return filepath.Join(n.dir, "server.properties") }

// awaitPeers waits until this node reports the given number of live brokers.
func (n *kafkaNode) awaitPeers(ctx context.Context, addr string, brokers int) error {
	return n.server.await(ctx, func(ctx context.Context) error {
		live, err := liveBrokers(ctx, addr)
		if err == nil && len(live) != brokers {
			err = fmt.Errorf("%d of %d brokers are live", len(live), brokers)
		}
		return err
	})
}

// awaitSelf waits until this node reports itself as a live broker.
func (n *kafkaNode) awaitSelf(ctx context.Context, addr string) error {
	return n.server.await(ctx, func(ctx context.Context) error {
		live, err := liveBrokers(ctx, addr)
		if err != nil {
			return err
		}
		for _, broker := range live {
			if int(broker.NodeID) == n.id {
				return nil
			}
		}
		return errors.New("broker is not live yet")
	})
}

// liveBrokers returns the brokers that the node at addr reports as able to serve clients. It asks
// only this node, because its client knows no other address.
func liveBrokers(ctx context.Context, addr string) (kadm.BrokerDetails, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	metadata, err := kadm.NewClient(client).BrokerMetadata(ctx)
	return metadata.Brokers, err
}

// minSession is the shortest permitted session timeout of a group member, in ms. It is short, so a
// test can wait until the session of a dead member ends.
const minSession = "1000"

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

// properties returns the settings of one node, as the text of a properties file. Internal topics
// have few partitions. They are replicated to all nodes, so one of three nodes may fail without
// loss of acknowledged data. Topics are not created automatically, and a new group does not wait
// for more members. The broker session is shorter than Kafka's default, because a killed node can
// return only after its session has ended.
func (k *Kafka) properties(node *kafkaNode) []byte {
	replicas := fmt.Sprint(len(k.nodes))
	inSync := fmt.Sprint((len(k.nodes) + 1) / 2)
	lines := map[string]string{
		"process.roles":                  "broker,controller",
		"node.id":                        fmt.Sprint(node.id),
		"controller.quorum.voters":       k.voters(),
		"controller.listener.names":      "CONTROLLER",
		"listeners":                      "PLAINTEXT://" + k.address(node.port) + ",CONTROLLER://" + address(node.controllerPort),
		"advertised.listeners":           "PLAINTEXT://" + k.address(node.port),
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

// propertiesFile returns the text of a Java properties file, sorted by name.
func propertiesFile(lines map[string]string) []byte {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintf(&text, "%s=%s\n", name, strings.ReplaceAll(lines[name], `\`, `\\`))
	}
	return []byte(text.String())
}

// voters returns the list of controllers: id@host:port, joined by commas.
func (k *Kafka) voters() string {
	voters := make([]string, len(k.nodes))
	for i, node := range k.nodes {
		voters[i] = fmt.Sprintf("%d@%s", node.id, address(node.controllerPort))
	}
	return strings.Join(voters, ",")
}

// LogDir returns the folder that stores a partition's log on a node. A test can remove the end of
// the log: it stops the node and calls ReplaceDir with an older copy of this folder. The result is
// the same as after an unclean leader election or a restored disk.
func (k *Kafka) LogDir(id int, topic string, partition int32) (string, error) {
	node, err := k.node(id)
	if err != nil {
		return "", err
	}
	return filepath.Join(node.dataDir(), fmt.Sprintf("%s-%d", topic, partition)), nil
}

// LogDir returns the folder in Dir that stores a partition's log and leader epoch after Fake.Close.
// See Kafka.LogDir.
func (o FakeOptions) LogDir(topic string, partition int32) string {
	return filepath.Join(o.Dir, "partitions", fmt.Sprintf("%s-%d", url.PathEscape(topic), partition))
}

// ReplaceDir replaces the folder dir by a copy of another folder.
func ReplaceDir(dir, of string) error {
	if _, err := os.Stat(of); err != nil {
		return fmt.Errorf("copy a folder: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("copy a folder: %w", err)
	}
	if err := os.CopyFS(dir, os.DirFS(of)); err != nil {
		return fmt.Errorf("copy a folder: %w", err)
	}
	return nil
}
