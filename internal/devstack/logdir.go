package devstack

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// LogDir is the folder in which a node keeps a partition's log. ReplaceDir with an older
// copy of it, while the node is stopped, and the log has lost its end, as after an
// unclean leader election or on a disk that was restored.
func (k *Kafka) LogDir(id int, topic string, partition int32) (string, error) {
	node, err := k.node(id)
	if err != nil {
		return "", err
	}
	return filepath.Join(node.dataDir(), fmt.Sprintf("%s-%d", topic, partition)), nil
}

// LogDir is the folder below Dir in which a closed Fake has kept a partition's log, with
// the partition's leader epoch. See Kafka.LogDir.
func (o FakeOptions) LogDir(topic string, partition int32) string {
	return filepath.Join(o.Dir, "partitions", fmt.Sprintf("%s-%d", url.PathEscape(topic), partition))
}

// ReplaceDir makes dir a copy of another folder: what it held before is gone.
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
