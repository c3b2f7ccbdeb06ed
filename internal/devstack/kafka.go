package devstack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// KafkaOptions configures a Kafka cluster. The zero value is valid.
type KafkaOptions struct {
	// Brokers is 1 or 3. Zero means 1. Each broker takes about 360 MB of memory.
	Brokers int
	// Settings are lines of server.properties. They are added to the defaults or replace them.
	Settings map[string]string
	// Security, if not nil, opens listeners that authenticate clients.
	Security *KafkaSecurity
	// Host is the address of this machine that clients connect to. Empty means 127.0.0.1. Clients
	// in containers with their own network need an address other than 127.0.0.1.
	Host string
	// ForLoad lets Java optimize the servers' code for hours of load. Without ForLoad, the start
	// uses one third less processor time.
	ForLoad bool
	// Log receives the servers' warnings and errors. Nil discards them.
	Log io.Writer
}

// stopGrace is how long Kafka may take to hand over its partitions and write its data. When a whole
// cluster stops, the last nodes have no quorum. Without this limit they would wait for their own
// timeout.
const stopGrace = 10 * time.Second

// Kafka is a separate Apache Kafka cluster. Every node is both a broker and a controller. Nodes are
// numbered from 1. The methods are safe for concurrent use.
type Kafka struct {
	dir      string
	java     string
	lib      string
	settings map[string]string
	security *KafkaSecurity
	host     string
	forLoad  bool
	log      io.Writer
	// classesOption is Java's option that reads or writes prepared classes, or "".
	classesOption string
	// bootstrap is a prepared file, or "" if Kafka's format tool must run.
	bootstrap string

	mu    sync.Mutex
	nodes []*kafkaNode
}

type kafkaNode struct {
	id             int
	dir            string
	port           int
	controllerPort int
	saslPort       int // only with KafkaSecurity
	tlsPort        int // only with KafkaSecurity
	server         *process
}

// StartKafka creates a cluster and returns when every broker answers and knows all other brokers.
// The first call on a machine downloads the jars. ctx limits the start only. Close ends the cluster.
func StartKafka(ctx context.Context, options KafkaOptions) (*Kafka, error) {
	k, err := newKafka(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("start Kafka: %w", err)
	}
	k.usePrepared(ctx)
	ctx, cancel := context.WithTimeout(ctx, startLimit) // the download has no time limit, because its duration depends on the network
	defer cancel()
	err = k.writeKeystores()
	if err == nil {
		err = k.format(ctx)
	}
	if err == nil {
		err = retryStart(ctx, k.startOnNewPorts)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start Kafka: %w", err), k.Close(ctx))
	}
	return k, nil
}

func newKafka(ctx context.Context, options KafkaOptions) (*Kafka, error) {
	brokers := max(options.Brokers, 1)
	if brokers != 1 && brokers != 3 {
		return nil, fmt.Errorf("a cluster has 1 or 3 brokers, not %d", brokers)
	}
	java, err := findJava()
	if err != nil {
		return nil, err
	}
	lib, err := fetchKafka(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "projector-kafka-")
	if err != nil {
		return nil, err
	}
	k := &Kafka{
		dir: dir, java: java, lib: lib,
		settings: options.Settings, security: options.Security, host: cmp.Or(options.Host, localhost),
		forLoad: options.ForLoad, log: serverLog(options.Log),
	}
	k.addNodes(brokers)
	return k, nil
}

// startOnNewPorts starts all nodes at the same time, because no node becomes ready without a
// quorum.
func (k *Kafka) startOnNewPorts(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.assignPorts(); err != nil {
		return err
	}
	err := k.launchAll()
	for _, node := range k.nodes {
		if err == nil {
			err = node.awaitPeers(ctx, k.address(node.port), len(k.nodes))
		}
	}
	if err != nil {
		for _, node := range k.nodes {
			node.server.kill()
		}
	}
	return err
}

func (k *Kafka) launchAll() error {
	for _, node := range k.nodes {
		if err := k.launch(node); err != nil {
			return err
		}
	}
	return nil
}

// StartNode starts a stopped or killed node with its old port and data. It returns when the cluster
// accepts it as a live broker.
func (k *Kafka) StartNode(ctx context.Context, id int) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	k.mu.Lock()
	defer k.mu.Unlock()
	node, err := k.node(id)
	if err != nil || node.server.running() {
		return err
	}
	if err := k.launch(node); err != nil {
		return fmt.Errorf("start Kafka node %d: %w", id, err)
	}
	if err := node.awaitSelf(ctx, k.address(node.port)); err != nil {
		node.server.kill()
		return fmt.Errorf("start Kafka node %d: %w", id, err)
	}
	return nil
}

// Kill ends a node with SIGKILL and returns when the process has ended.
func (k *Kafka) Kill(id int) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	node, err := k.node(id)
	if err == nil {
		node.server.kill()
	}
	return err
}

// PID returns the process id of a node, or 0 if the node is stopped or unknown.
func (k *Kafka) PID(id int) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	node, err := k.node(id)
	if err != nil {
		return 0
	}
	return node.server.pid()
}

// Stop shuts all nodes down and leaves their data for StartNode. A node that takes too long is
// killed, and Kafka recovers its log at the next start.
func (k *Kafka) Stop(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	var stopped sync.WaitGroup
	for _, node := range k.nodes {
		stopped.Go(func() { _ = node.server.stop(ctx, syscall.SIGTERM) })
	}
	stopped.Wait()
	return nil
}

// Close ends the cluster and removes its data folder.
func (k *Kafka) Close(context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, node := range k.nodes {
		node.server.kill()
	}
	return os.RemoveAll(k.dir)
}

// Addrs returns the brokers' addresses, host:port, in the order of the nodes. The result includes
// stopped nodes.
func (k *Kafka) Addrs() []string { return k.addrs(func(n *kafkaNode) int { return n.port }) }

func (k *Kafka) addrs(port func(*kafkaNode) int) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	addrs := make([]string, len(k.nodes))
	for i, node := range k.nodes {
		addrs[i] = k.address(port(node))
	}
	return addrs
}

// address returns the address at which clients reach a port of this cluster.
func (k *Kafka) address(port int) string { return net.JoinHostPort(k.host, strconv.Itoa(port)) }

func (k *Kafka) node(id int) (*kafkaNode, error) {
	if id < 1 || id > len(k.nodes) {
		return nil, fmt.Errorf("no Kafka node %d: there are 1 to %d", id, len(k.nodes))
	}
	return k.nodes[id-1], nil
}
