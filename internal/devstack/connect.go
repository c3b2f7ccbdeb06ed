package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ConnectOptions configures a Kafka Connect worker. Brokers and Connectors are required.
type ConnectOptions struct {
	// Brokers are the addresses (host:port) of the Kafka cluster that the worker writes to.
	Brokers []string
	// Connectors are JSON documents in the form of Connect's REST API: {"name": …, "config": {…}}.
	Connectors [][]byte
	// Env is added to the environment of the worker. A connector's configuration refers to a
	// variable as ${env:NAME}, for example for a password.
	Env []string
	// Settings are worker properties. They are added to the defaults or replace them.
	Settings map[string]string
	// Log receives the worker's warnings and errors. Nil discards them.
	Log io.Writer
}

// Connect is a standalone Kafka Connect worker with Debezium's PostgreSQL connector. After a kill
// and a restart it continues from the offsets in its file. It then publishes again what it had
// published after these offsets were written. It is safe for concurrent use.
type Connect struct {
	server
	dir       string
	java, lib string
	options   ConnectOptions
	names     []string
	log       io.Writer
}

// StartConnect starts a worker and returns when all tasks of its connectors run. The first call on
// a machine downloads the jars. ctx limits the start only. Close ends the worker.
func StartConnect(ctx context.Context, options ConnectOptions) (*Connect, error) {
	c, err := newConnect(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("start Kafka Connect: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit) // the download has no time limit, because its duration depends on the network
	defer cancel()
	if err := retryStart(ctx, c.startOnNewPort); err != nil {
		return nil, errors.Join(fmt.Errorf("start Kafka Connect: %w", err), c.Close(ctx))
	}
	return c, nil
}

func newConnect(ctx context.Context, options ConnectOptions) (*Connect, error) {
	java, err := findJava()
	if err != nil {
		return nil, err
	}
	lib, err := fetchConnect(ctx)
	if err != nil {
		return nil, err
	}
	names, err := connectorNames(options.Connectors)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "projector-connect-")
	if err != nil {
		return nil, err
	}
	return &Connect{dir: dir, java: java, lib: lib, options: options, names: names, log: serverLog(options.Log)}, nil
}

func (c *Connect) startOnNewPort(ctx context.Context) error {
	if err := c.choosePort(); err != nil {
		return err
	}
	if err := c.writeFiles(); err != nil {
		return err
	}
	return c.Start(ctx)
}

// Start starts a stopped or killed worker with the offsets it had, and returns when all its tasks
// run. It does nothing if the worker already runs.
func (c *Connect) Start(ctx context.Context) error {
	return c.start(ctx, func() (*process, error) {
		return startProcess(c.command(), syscall.SIGKILL, c.log)
	}, func(ctx context.Context, started *process) error {
		for _, name := range c.names {
			if err := c.awaitConnector(ctx, started, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// Kill ends the worker with SIGKILL and returns when the process has ended.
func (c *Connect) Kill() { c.kill() }

// OffsetsWrittenAt returns when the worker last wrote its offsets, or the zero time if it has never
// written them. After a Kill and a Start, the worker publishes again what it had published after
// that time.
func (c *Connect) OffsetsWrittenAt() (time.Time, error) {
	info, err := os.Stat(c.offsetsFile())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return time.Time{}, nil
	case err != nil:
		return time.Time{}, fmt.Errorf("look at the offsets of Kafka Connect: %w", err)
	default:
		return info.ModTime(), nil
	}
}

// Close ends the worker and removes its folder.
func (c *Connect) Close(context.Context) error {
	c.kill()
	return os.RemoveAll(c.dir)
}

func (c *Connect) offsetsFile() string { return filepath.Join(c.dir, "connect.offsets") }

func (c *Connect) writeFiles() error {
	if err := os.WriteFile(c.workerFile(), c.workerProperties(), 0o600); err != nil {
		return err
	}
	for i, document := range c.options.Connectors {
		if err := os.WriteFile(c.connectorFile(i), document, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (c *Connect) workerFile() string { return filepath.Join(c.dir, "worker.properties") }

func (c *Connect) connectorFile(i int) string {
	return filepath.Join(c.dir, "connector"+strconv.Itoa(i+1)+".json")
}

// workerProperties returns the properties of a worker. The worker has its own port. It finds its
// plugins on the class path by their service files, because a scan of every jar is slow. A
// connector can set other converters.
func (c *Connect) workerProperties() []byte {
	lines := map[string]string{
		"bootstrap.servers":            strings.Join(c.options.Brokers, ","),
		"listeners":                    "http://" + address(c.port),
		"offset.storage.file.filename": c.offsetsFile(),
		"key.converter":                "org.apache.kafka.connect.storage.StringConverter",
		"value.converter":              "org.apache.kafka.connect.storage.StringConverter",
		"plugin.discovery":             "service_load",
		"config.providers":             "env",
		"config.providers.env.class":   "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
	}
	maps.Copy(lines, c.options.Settings)
	return propertiesFile(lines)
}

func (c *Connect) command() *exec.Cmd {
	args := []string{
		"-cp", filepath.Join(c.lib, "*"), "-XX:+UseSerialGC", quickStart, "-Xmx384m",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
		"org.apache.kafka.connect.cli.ConnectStandalone", c.workerFile(),
	}
	for i := range c.options.Connectors {
		args = append(args, c.connectorFile(i))
	}
	cmd := exec.CommandContext(context.Background(), c.java, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), c.options.Env...)
	return cmd
}

// errNotRunning means that a connector does not run yet, so awaitConnector continues to wait.
var errNotRunning = errors.New("connector is not running yet")
