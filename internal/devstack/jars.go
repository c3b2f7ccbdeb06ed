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

// What StartKafka, StartConnect and StartRegistry run. Debezium is built for a range of
// Kafka versions; Connect and the broker are of one version here. Newer versions of the
// registry need Java 21.
const (
	KafkaVersion    = "4.3.0"
	DebeziumVersion = "3.7.0.Final"
	RegistryVersion = "3.0.9"
)

//go:embed kafka.pom.xml
var kafkaPOM []byte

//go:embed connect.pom.xml
var connectPOM []byte

//go:embed registry.pom.xml
var registryPOM []byte

// FetchKafka returns the folder that holds Kafka's jars, about 44 MB in the
// user's cache. On first use it collects them by mvn, which needs a registry of
// Maven artifacts.
func FetchKafka(ctx context.Context) (string, error) {
	return fetchJars(ctx, "kafka-"+KafkaVersion, kafkaPOM)
}

// FetchConnect returns the folder that holds the jars of Kafka Connect and of
// Debezium's PostgreSQL connector, about 39 MB in the user's cache, fetched as
// FetchKafka does.
func FetchConnect(ctx context.Context) (string, error) {
	return fetchJars(ctx, "connect-"+KafkaVersion+"-debezium-"+DebeziumVersion, connectPOM)
}

// FetchRegistry returns the folder that holds Apicurio Registry, about 120 MB in the
// user's cache, fetched as FetchKafka does.
func FetchRegistry(ctx context.Context) (string, error) {
	return fetchJars(ctx, "apicurio-registry-"+RegistryVersion, registryPOM)
}

// fetchJars collects what pom depends on, once for each name.
func fetchJars(ctx context.Context, name string, pom []byte) (string, error) {
	root, err := cacheRoot()
	if err != nil {
		return "", err
	}
	return cached(root, name, func(lib string) error {
		if err := collectJars(ctx, pom, lib); err != nil {
			return fmt.Errorf("fetch %s: %w", name, err)
		}
		return nil
	})
}

func collectJars(ctx context.Context, pom []byte, lib string) error {
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		return errors.New("mvn not found: install Apache Maven, which fetches it once, or use a running server instead")
	}
	build, err := os.MkdirTemp("", "projector-jars-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(build) }()
	file := filepath.Join(build, "pom.xml")
	if err := os.WriteFile(file, pom, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, mvn, "--batch-mode", "--quiet", "--file", file,
		"-Dkafka.version="+KafkaVersion, "-Ddebezium.version="+DebeziumVersion, "-Dregistry.version="+RegistryVersion, "-Dlib="+lib, "package")
	output, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("mvn: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}

// findJava returns the java to run the servers with: that of $JAVA_HOME, else of PATH.
func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if java := filepath.Join(home, "bin", "java"); isProgram(java) {
			return java, nil
		}
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return "", errors.New("java not found: install a Java runtime, version 17 or newer, or use a running server instead")
	}
	return java, nil
}
