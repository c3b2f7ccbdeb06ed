package errclass

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// NoAnswer returns an error with another text if err is a time-out or if the deadline of ctx has
// passed. It returns any other error unchanged. The client's own time-out only names the step at
// which the client waited. This step can mislead, for example if it is the name lookup although the
// broker hangs.
func NoAnswer(ctx context.Context, servers []string, within time.Duration, err error) error {
	var network net.Error
	// A time-out of the client also counts, because it may come just before the deadline of ctx.
	ended := errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
	if err == nil || !ended {
		return err
	}
	return WithCause(fmt.Sprintf("no answer from %s within %s", strings.Join(servers, ", "), within), err)
}
