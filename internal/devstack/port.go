package devstack

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
)

// The kernel takes ports for outgoing connections from 32768 up (Linux) or
// 49152 up (macOS). A server that is stopped for a while must find its port
// again, so its port comes from below.
const (
	firstPort = 15000
	lastPort  = 32000
)

const localhost = "127.0.0.1"

// freePorts returns n different ports on 127.0.0.1 that nobody listens on now.
func freePorts(n int) ([]int, error) {
	var held []net.Listener // until all are found, so that no port comes twice
	defer func() {
		for _, listener := range held {
			_ = listener.Close()
		}
	}()
	ports := make([]int, 0, n)
	for range 100 * n {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		held = append(held, listener)
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("no free port on %s between %d and %d", localhost, firstPort, lastPort)
}

func address(port int) string { return net.JoinHostPort(localhost, strconv.Itoa(port)) }

// get asks an HTTP server on this machine. The caller closes the answer's body.
func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}
