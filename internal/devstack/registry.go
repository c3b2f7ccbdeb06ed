package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// Registry is an Apicurio Registry, which implements Confluent's API. After a stop it can start
// again with its schemas. Close removes the schemas. A Registry is safe for concurrent use.
type Registry struct {
	server
	dir       string
	java, lib string
}

// StartRegistry starts a registry and returns when it answers. The first call on a machine
// downloads the registry. ctx limits the start only. Close ends the registry.
func StartRegistry(ctx context.Context) (*Registry, error) {
	r, err := newRegistry(ctx)
	if err != nil {
		return nil, fmt.Errorf("start the schema registry: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit) // the download has no time limit, because its duration depends on the network
	defer cancel()
	if err := retryStart(ctx, r.startOnNewPort); err != nil {
		return nil, errors.Join(fmt.Errorf("start the schema registry: %w", err), r.Close(ctx))
	}
	return r, nil
}

func newRegistry(ctx context.Context) (*Registry, error) {
	java, err := findJava()
	if err != nil {
		return nil, err
	}
	lib, err := fetchRegistry(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "projector-registry-")
	if err != nil {
		return nil, err
	}
	return &Registry{dir: dir, java: java, lib: lib}, nil
}

func (r *Registry) startOnNewPort(ctx context.Context) error {
	if err := r.choosePort(); err != nil {
		return err
	}
	return r.Start(ctx)
}

// URL returns the URL of Confluent's API.
func (r *Registry) URL() string { return "http://" + address(r.port) + "/apis/ccompat/v7" }

// Start starts a stopped registry with its schemas, and returns when it answers. It does nothing if
// the registry already runs.
func (r *Registry) Start(ctx context.Context) error {
	return r.start(ctx, func() (*process, error) {
		return startProcess(r.command(), syscall.SIGKILL, io.Discard)
	}, func(ctx context.Context, started *process) error { return started.await(ctx, r.answers) })
}

func (r *Registry) command() *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), r.java,
		"-XX:+UseSerialGC", quickStart, "-Xmx256m",
		"-jar", filepath.Join(r.lib, "apicurio-registry-app-"+registryVersion+"-runner.jar"))
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(),
		"QUARKUS_HTTP_HOST="+localhost, "QUARKUS_HTTP_PORT="+strconv.Itoa(r.port), "QUARKUS_LOG_LEVEL=WARN",
		"APICURIO_STORAGE_KIND=sql", "APICURIO_STORAGE_SQL_KIND=h2",
		"APICURIO_DATASOURCE_URL=jdbc:h2:file:"+filepath.Join(r.dir, "schemas"),
		// The default of 5 seconds is too short to open the database on a busy machine.
		"QUARKUS_DATASOURCE_H2_JDBC_ACQUISITION_TIMEOUT="+startLimit.String())
	return cmd
}

func (r *Registry) answers(ctx context.Context) error {
	response, err := get(ctx, r.URL()+"/subjects")
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the schema registry answers %s", response.Status)
	}
	return nil
}

// Stop shuts the registry down. A registry that takes too long is killed.
func (r *Registry) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stopGrace)
	defer cancel()
	if err := r.stop(ctx, syscall.SIGTERM); err != nil {
		return fmt.Errorf("stop the schema registry: %w", err)
	}
	return nil
}

// Close ends the registry and removes its schemas.
func (r *Registry) Close(context.Context) error {
	r.kill()
	return os.RemoveAll(r.dir)
}
