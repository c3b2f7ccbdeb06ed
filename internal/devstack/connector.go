package devstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

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

// awaitConnector waits until a connector and all its tasks run. It returns an error at once if the
// connector or a task has failed, because nothing restarts a failed task.
func (c *Connect) awaitConnector(ctx context.Context, worker *process, name string) error {
	var failed error
	err := worker.await(ctx, func(ctx context.Context) error {
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

type connectorFailure struct{ name, trace string }

func (f connectorFailure) Error() string {
	return fmt.Sprintf("connector %s has failed: %s", f.name, f.trace)
}

// connectorState returns nil if a connector and all its tasks run. It returns a connectorFailure if
// the connector or a task has failed. Otherwise it returns another error.
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
