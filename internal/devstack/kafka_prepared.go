package devstack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// These files halve the processor time of a start of Kafka. They are the same for all clusters.
const (
	classesFile   = "classes.jsa"          // Kafka's classes as Java has them in memory (class data sharing)
	bootstrapFile = "bootstrap.checkpoint" // the first metadata of a cluster, from Kafka's format tool
)

// usePrepared makes the cluster start from the prepared files in the user's cache. On first use it
// creates them, which takes about 12 seconds of processor time. Kafka also runs without them, so a
// failure only makes the start slower. The log then names the reason.
func (k *Kafka) usePrepared(ctx context.Context) {
	dir, err := k.preparedFolder(ctx)
	if err != nil {
		_, _ = fmt.Fprintf(k.log, "Kafka starts more slowly, because nothing could be prepared: %v\n", err)
		return
	}
	k.bootstrap = filepath.Join(dir, bootstrapFile)
	k.classesOption = "-XX:SharedArchiveFile=" + filepath.Join(dir, classesFile)
}

// preparedFolder has another name for each Java, because Java accepts only the classes file of its
// own version.
func (k *Kafka) preparedFolder(ctx context.Context) (string, error) {
	root, err := cacheRoot()
	if err != nil {
		return "", err
	}
	version, err := exec.CommandContext(ctx, k.java, "-version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("java -version: %w: %s", err, version)
	}
	name := filepath.Base(k.lib) + "-prepared-" + nameOf(version)
	return cached(root, name, func(dir string) error { return k.prepare(ctx, dir) })
}

// prepare fills dir. It runs a broker that does what tests do most, because Java writes the classes
// that this broker has loaded when the broker ends.
func (k *Kafka) prepare(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	model := &Kafka{dir: filepath.Join(dir, "model"), java: k.java, lib: k.lib, host: localhost, log: serverLog(nil)}
	model.addNodes(1)
	defer func() { _ = model.Close(ctx) }()
	if err := os.Mkdir(model.dir, 0o755); err != nil {
		return err
	}
	if err := model.format(ctx); err != nil {
		return err
	}
	node := model.nodes[0]
	if err := copyFile(filepath.Join(dir, bootstrapFile), filepath.Join(node.dataDir(), bootstrapFile)); err != nil {
		return err
	}
	model.classesOption = "-XX:ArchiveClassesAtExit=" + filepath.Join(dir, classesFile)
	if err := retryStart(ctx, model.startOnNewPorts); err != nil {
		return err
	}
	if err := exercise(ctx, model.Addrs()); err != nil {
		return err
	}
	if err := node.server.stop(ctx, syscall.SIGTERM); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, classesFile)); err != nil {
		return fmt.Errorf("%w; Java's last words: %s", err, node.server.tail)
	}
	return nil
}

// exercise writes a record to a new topic, reads it in a group and commits.
func exercise(ctx context.Context, addrs []string) error {
	const topic = "topic"
	client, err := kgo.NewClient(kgo.SeedBrokers(addrs...), kgo.ConsumeTopics(topic), kgo.ConsumerGroup("group"),
		kgo.UnknownTopicRetries(-1), kgo.DisableAutoCommit())
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := kadm.NewClient(client).CreateTopic(ctx, 1, -1, nil, topic); err != nil {
		return err
	}
	if err := client.ProduceSync(ctx, &kgo.Record{Topic: topic}).FirstErr(); err != nil {
		return err
	}
	if err := client.PollFetches(ctx).Err0(); err != nil {
		return err
	}
	return client.CommitUncommittedOffsets(ctx)
}

// placeFormat does what Kafka's format tool does, without a start of Java.
func (k *Kafka) placeFormat(node *kafkaNode, clusterID string) error {
	if err := os.MkdirAll(node.dataDir(), 0o755); err != nil {
		return err
	}
	identity := fmt.Sprintf("version=1\nnode.id=%d\ncluster.id=%s\ndirectory.id=%s\n", node.id, clusterID, newClusterID())
	if err := os.WriteFile(filepath.Join(node.dataDir(), "meta.properties"), []byte(identity), 0o600); err != nil {
		return err
	}
	return copyFile(filepath.Join(node.dataDir(), bootstrapFile), k.bootstrap)
}

func copyFile(to, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o600)
}
