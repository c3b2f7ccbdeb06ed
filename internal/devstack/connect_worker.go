package devstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

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
