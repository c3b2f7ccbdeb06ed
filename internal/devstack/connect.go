package devstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ConnectOptions says what a Kafka Connect worker runs. Brokers and Connectors
// are needed.
type ConnectOptions struct {
	// Brokers are the addresses of the Kafka to write to, host:port.
	Brokers []string
	// Connectors are JSON documents as Connect's REST API takes them:
	// {"name": …, "config": {…}}.
	Connectors [][]byte
	// Env joins this process's environment: a configuration names what is secret
	// or differs from place to place as ${env:NAME}.
	Env []string
	// Settings are worker properties that replace or join the defaults.
	Settings map[string]string
	// Dir keeps the worker's offsets. Empty means a temporary folder that Close removes.
	Dir string
	// Log receives the worker's warnings and errors. Nil discards them.
	Log io.Writer
}

// Connect is a standalone Kafka Connect worker with Debezium's PostgreSQL
// connector. It may be killed and started again: it then goes on where its
// offsets file says, which is behind what it has published. Safe for concurrent use.
type Connect struct {
	dir       string
	temporary bool
	java, lib string
	options   ConnectOptions
	names     []string
	log       io.Writer
	port      int

	mu     sync.Mutex
	server *process
}

// StartConnect starts a worker and returns when all tasks of its connectors run.
// The first call on a machine fetches the jars. ctx limits the start only; end
// the worker by Close.
func StartConnect(ctx context.Context, options ConnectOptions) (*Connect, error) {
	c, err := newConnect(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("start Kafka Connect: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit) // not for the fetching, which depends on the line
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
	dir, temporary, err := dataFolder(options.Dir, "", "projector-connect-")
	if err != nil {
		return nil, err
	}
	return &Connect{
		dir: dir, temporary: temporary, java: java, lib: lib,
		options: options, names: names, log: serverLog(options.Log),
	}, nil
}

func connectorNames(documents [][]byte) ([]string, error) {
	names := make([]string, len(documents))
	for i, document := range documents {
		var connector struct{ Name string }
		if err := json.Unmarshal(document, &connector); err != nil {
			return nil, fmt.Errorf("connector %d: %w", i+1, err)
		}
		if connector.Name == "" {
			return nil, fmt.Errorf("connector %d has no name", i+1)
		}
		names[i] = connector.Name
	}
	return names, nil
}

func (c *Connect) startOnNewPort(ctx context.Context) error {
	ports, err := freePorts(1)
	if err != nil {
		return err
	}
	c.port = ports[0]
	if err := c.writeFiles(); err != nil {
		return err
	}
	return c.Start(ctx)
}

// Start starts a worker that was stopped or killed, with the offsets it had, and
// returns when all its tasks run. A running worker is left alone.
func (c *Connect) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server.running() {
		return nil
	}
	server, err := startProcess(c.command(), syscall.SIGKILL, c.log)
	if err != nil {
		return err
	}
	c.server = server
	for _, name := range c.names {
		if err := c.awaitConnector(ctx, name); err != nil {
			server.kill()
			return err
		}
	}
	return nil
}

// Kill ends the worker as kill -9 does and returns when it is gone.
func (c *Connect) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.kill()
}

// OffsetsWrittenAt is when the worker last wrote down how far it has come, zero
// when it never has: what it published since, it publishes again after a Kill.
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

// Stop shuts the worker down in an orderly way: it writes its offsets. One that
// takes too long is killed.
func (c *Connect) Stop(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	if err := c.server.stop(ctx, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop Kafka Connect: %w", err)
	}
	return nil
}

// Close ends the worker for good and removes a temporary folder.
func (c *Connect) Close(ctx context.Context) error {
	if !c.temporary {
		return c.Stop(ctx)
	}
	c.Kill()
	return os.RemoveAll(c.dir)
}

func (c *Connect) offsetsFile() string { return filepath.Join(c.dir, "connect.offsets") }

// writeFiles writes the worker's properties and a file for each connector.
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

// workerProperties are those of a worker as others run it, but on a port of its
// own and with its plugins on the class path, where they are looked up by their
// service files instead of by a scan of every jar. A connector names its own
// converters.
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
		"-cp", filepath.Join(c.lib, "*"), "-XX:+UseSerialGC", "-Xmx384m",
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

// errNotRunning is a state of a connector that may pass.
var errNotRunning = errors.New("connector is not running yet")

// awaitConnector waits until a connector and all its tasks run. One that has
// failed is not waited for: nothing restarts it.
func (c *Connect) awaitConnector(ctx context.Context, name string) error {
	var failed error
	err := c.server.await(ctx, func(ctx context.Context) error {
		err := c.connectorState(ctx, name)
		var failure connectorFailure
		if errors.As(err, &failure) {
			failed = err
			return nil
		}
		return err
	})
	return errors.Join(err, failed)
}

// connectorFailure is the stack trace of a connector or a task that has failed.
type connectorFailure struct{ name, trace string }

// Error implements error.
func (f connectorFailure) Error() string {
	return fmt.Sprintf("connector %s has failed: %s", f.name, f.trace)
}

// connectorState returns nil when a connector and all its tasks run, a
// connectorFailure when one of them has failed.
func (c *Connect) connectorState(ctx context.Context, name string) error {
	response, err := get(ctx, "http://"+address(c.port)+"/connectors/"+url.PathEscape(name)+"/status")
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	type state struct{ State, Trace string }
	var answer struct {
		Connector state
		Tasks     []state
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s", errNotRunning, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return err
	}
	states := append(slices.Clip(answer.Tasks), answer.Connector)
	for _, s := range states {
		if s.State == "FAILED" {
			return connectorFailure{name, s.Trace}
		}
	}
	if len(answer.Tasks) == 0 || slices.ContainsFunc(states, func(s state) bool { return s.State != "RUNNING" }) {
		return errNotRunning
	}
	return nil
}
