package devstack

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// KafkaVersion is the Apache Kafka that StartKafka runs.
const KafkaVersion = "4.3.0"

//go:embed kafka.pom.xml
var kafkaPOM []byte

// FetchKafka returns the folder that holds Kafka's jars, about 44 MB in the
// user's cache. On first use it collects them by mvn, which needs a registry of
// Maven artifacts.
func FetchKafka(ctx context.Context) (string, error) {
	root, err := cacheRoot()
	if err != nil {
		return "", err
	}
	return cached(root, "kafka-"+KafkaVersion, func(dir string) error { return collectJars(ctx, dir) })
}

func collectJars(ctx context.Context, lib string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return errors.New("mvn not found: install Apache Maven, which fetches Kafka once, or use a running broker instead")
	}
	build, err := os.MkdirTemp("", "projector-kafka-build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(build) }()
	pom := filepath.Join(build, "pom.xml")
	if err := os.WriteFile(pom, kafkaPOM, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, mvn, "--batch-mode", "--quiet", "--file", pom,
		"-Dkafka.version="+KafkaVersion, "-Dlib="+lib, "package")
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("fetch Kafka %s by mvn: %w: %s", KafkaVersion, err, bytes.TrimSpace(output))
	}
	return nil
}

// findJava returns the java to run Kafka with: that of $JAVA_HOME, else of PATH.
func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if java := filepath.Join(home, "bin", "java"); isProgram(java) {
			return java, nil
		}
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return "", errors.New("java not found: install a Java runtime, version 17 or newer, or use a running broker instead")
	}
	return java, nil
}
