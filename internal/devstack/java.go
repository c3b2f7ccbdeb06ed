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

// These are the versions that StartKafka, StartConnect and StartRegistry run. Connect and the
// broker have the same version, which Debezium supports. Newer versions of the registry need Java
// 21.
const (
	KafkaVersion    = "4.3.0"
	DebeziumVersion = "3.7.0.Final"
	registryVersion = "3.0.9"
)

// quickStart is a Java option for servers that run for seconds or minutes. It reduces the processor
// time of their start. For hours of load, it would increase the processor time.
const quickStart = "-XX:TieredStopAtLevel=1"

//go:embed kafka.pom.xml
var kafkaPOM []byte

//go:embed connect.pom.xml
var connectPOM []byte

//go:embed registry.pom.xml
var registryPOM []byte

// fetchKafka returns the folder that holds Kafka's jars, about 44 MB in the user's cache. On first
// use it downloads them with mvn from a Maven registry. $PROJECTOR_KAFKA_VERSION chooses another
// version.
func fetchKafka(ctx context.Context) (string, error) {
	version := cmp.Or(os.Getenv("PROJECTOR_KAFKA_VERSION"), KafkaVersion)
	return fetchJars(ctx, "kafka-"+version+"-with-tools", kafkaPOM, version)
}

// fetchConnect returns the folder that holds the jars of Kafka Connect and of Debezium's PostgreSQL
// connector, about 39 MB in the user's cache. It downloads the jars as fetchKafka does.
func fetchConnect(ctx context.Context) (string, error) {
	return fetchJars(ctx, "connect-"+KafkaVersion+"-debezium-"+DebeziumVersion, connectPOM, KafkaVersion)
}

// fetchRegistry returns the folder that holds Apicurio Registry, about 120 MB in the user's cache.
// It downloads the registry as fetchKafka downloads Kafka.
func fetchRegistry(ctx context.Context) (string, error) {
	return fetchJars(ctx, "apicurio-registry-"+registryVersion, registryPOM, KafkaVersion)
}

// fetchJars downloads the dependencies of pom into the cache, unless they are already there. The
// parameter name becomes a part of the folder's name.
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

// findJava returns the java program that runs the servers: from $JAVA_HOME, or else from PATH.
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

// Program is a program that uses the servers. Like the servers, it ends with this process.
type Program struct{ process *process }

// StartProgram starts cmd. The output of cmd goes to log, which may be nil.
func StartProgram(cmd *exec.Cmd, log io.Writer) (*Program, error) {
	p, err := startProcess(cmd, syscall.SIGTERM, serverLog(log))
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return &Program{p}, nil
}

// Ended is closed when the program has ended.
func (p *Program) Ended() <-chan struct{} { return p.process.done }

// PID returns the program's process id, or 0 if it has ended.
func (p *Program) PID() int { return p.process.pid() }

// Output returns the last part of the program's output.
func (p *Program) Output() string { return p.process.tail.String() }

// Stop sends SIGTERM to the program and waits for its end. It returns an error if the program had
// to be killed, had already ended, or exited with a status other than 0.
func (p *Program) Stop(ctx context.Context) error {
	if !p.process.running() {
		return fmt.Errorf("ended by itself: %s; its last words: %s", p.process.cmd.ProcessState, p.Output())
	}
	if err := p.process.stop(ctx, syscall.SIGTERM); err != nil {
		return fmt.Errorf("%w; its last words: %s", err, p.Output())
	}
	return p.Wait()
}

// Wait waits for the end of the program. It returns an error if the program exited with a status
// other than 0.
func (p *Program) Wait() error {
	<-p.process.done
	if state := p.process.cmd.ProcessState; !state.Success() {
		return fmt.Errorf("%s; its last words: %s", state, p.Output())
	}
	return nil
}

// Kill ends the program at once. It does nothing if the program has already ended.
func (p *Program) Kill(context.Context) error {
	p.process.kill()
	return nil
}
