package devstack

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// What StartKafka, StartConnect and StartRegistry run. Debezium is built for a range of
// Kafka versions; Connect and the broker are of one version here. Newer versions of the
// registry need Java 21.
const (
	KafkaVersion    = "4.3.0"
	DebeziumVersion = "3.7.0.Final"
	registryVersion = "3.0.9"
)

// quickStart is an option of Java for servers that live for seconds or minutes: their start
// takes less processor time, and hours of load would take more.
const quickStart = "-XX:TieredStopAtLevel=1"

//go:embed kafka.pom.xml
var kafkaPOM []byte

//go:embed connect.pom.xml
var connectPOM []byte

//go:embed registry.pom.xml
var registryPOM []byte

// fetchKafka returns the folder that holds Kafka's jars, about 44 MB in the
// user's cache. On first use it collects them by mvn, which needs a registry of
// Maven artifacts. $PROJECTOR_KAFKA_VERSION names another version than usual.
func fetchKafka(ctx context.Context) (string, error) {
	version := cmp.Or(os.Getenv("PROJECTOR_KAFKA_VERSION"), KafkaVersion)
	return fetchJars(ctx, "kafka-"+version+"-with-tools", kafkaPOM, version)
}

// fetchConnect returns the folder that holds the jars of Kafka Connect and of
// Debezium's PostgreSQL connector, about 39 MB in the user's cache, fetched as
// fetchKafka does.
func fetchConnect(ctx context.Context) (string, error) {
	return fetchJars(ctx, "connect-"+KafkaVersion+"-debezium-"+DebeziumVersion, connectPOM, KafkaVersion)
}

// fetchRegistry returns the folder that holds Apicurio Registry, about 120 MB in the
// user's cache, fetched as fetchKafka does.
func fetchRegistry(ctx context.Context) (string, error) {
	return fetchJars(ctx, "apicurio-registry-"+registryVersion, registryPOM, KafkaVersion)
}

// fetchJars collects what pom depends on, once for each name.
func fetchJars(ctx context.Context, name string, pom []byte, kafka string) (string, error) {
	root, err := cacheRoot()
	if err != nil {
		return "", err
	}
	return cached(root, name, func(lib string) error {
		if err := collectJars(ctx, pom, lib, kafka); err != nil {
			return fmt.Errorf("fetch %s: %w", name, err)
		}
		return nil
	})
}

func collectJars(ctx context.Context, pom []byte, lib, kafka string) error {
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
		"-Dkafka.version="+kafka, "-Ddebezium.version="+DebeziumVersion, "-Dregistry.version="+registryVersion, "-Dlib="+lib, "package")
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

// Program is a program that runs next to the servers and ends with this process, as
// they do: what they are started for.
type Program struct{ process *process }

// StartProgram starts cmd, which must not be started yet. Its output goes to log,
// which may be nil.
func StartProgram(cmd *exec.Cmd, log io.Writer) (*Program, error) {
	p, err := startProcess(cmd, syscall.SIGTERM, serverLog(log))
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return &Program{p}, nil
}

// Ended is closed when the program has ended.
func (p *Program) Ended() <-chan struct{} { return p.process.done }

// Output is the end of what the program has printed.
func (p *Program) Output() string { return p.process.tail.String() }

// Stop asks the program to end, by SIGTERM, and waits for it. An error says that it
// had to be killed, or ended by itself or with a status other than 0.
func (p *Program) Stop(ctx context.Context) error {
	if !p.process.running() {
		return fmt.Errorf("ended by itself: %s; its last words: %s", p.process.cmd.ProcessState, p.Output())
	}
	if err := p.process.stop(ctx, syscall.SIGTERM); err != nil {
		return err
	}
	if state := p.process.cmd.ProcessState; !state.Success() {
		return fmt.Errorf("%s; its last words: %s", state, p.Output())
	}
	return nil
}

// Kill ends the program at once, if it has not ended.
func (p *Program) Kill(context.Context) error {
	p.process.kill()
	return nil
}
