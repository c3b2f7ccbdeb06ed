package errclass

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// NoAnswerError says that no server has answered in time.
type NoAnswerError struct {
	Servers []string
	Within  time.Duration
	Err     error // where the client happened to wait
}

// NoAnswer makes a NoAnswerError of an error that the end of the time has caused, and returns any
// other as it is. A client that runs out of time names where it happened to wait: with a
// frozen broker, that may be the lookup of its name.
func NoAnswer(ctx context.Context, servers []string, within time.Duration, err error) error {
	var network net.Error
	// The deadline of a connection may end just before the context.
	ended := errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
	if err == nil || !ended {
		return err
	}
	return &NoAnswerError{Servers: servers, Within: within, Err: err}
}

// Error implements error.
func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("no answer from %s within %s", strings.Join(e.Servers, ", "), e.Within)
}

// SafeText implements Describer.
func (e *NoAnswerError) SafeText() string { return e.Error() }

// Unwrap implements the interface of package errors.
func (e *NoAnswerError) Unwrap() error { return e.Err }
