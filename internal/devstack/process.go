package devstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// errExited means that a server ended before it was ready, for example because another process took
// its port.
var errExited = errors.New("server ended before it was ready")

// outputGrace is how long the children of an ended server may hold its output open.
const outputGrace = 5 * time.Second

type process struct {
	cmd  *exec.Cmd
	tail *tail
	done chan struct{} // closed when the server and its output have ended
}

// startProcess starts cmd in its own process group. A Ctrl-C for the caller therefore does not
// reach the server before the caller has finished its work. If the caller dies without stopping the
// server, the server gets the signal in the parameter last.
func startProcess(cmd *exec.Cmd, last syscall.Signal, log io.Writer) (*process, error) {
	p := &process{cmd: cmd, tail: &tail{}, done: make(chan struct{})}
	output := io.MultiWriter(p.tail, log)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.WaitDelay = outputGrace
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr, last)

	started := make(chan error)
	go func() {
		// The kernel sends the parent-death signal when the thread that started the child ends, not
		// when the process ends. This thread therefore waits for the end of the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // the captured output shows how it ended
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// running reports whether the server runs. A nil process does not run.
func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// pid returns the server's process id, or 0 if it has ended.
func (p *process) pid() int {
	if !p.running() {
		return 0
	}
	return p.cmd.Process.Pid
}

// stop sends sig and waits for the end. If ctx ends first, the server is killed and stop returns an
// error.
func (p *process) stop(ctx context.Context, sig syscall.Signal) error {
	if !p.running() {
		return nil
	}
	_ = p.cmd.Process.Signal(sig)
	_ = p.cmd.Process.Signal(syscall.SIGCONT) // a server that a test froze must continue to handle the signal
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("killed, because it had not stopped in time: %w", ctx.Err())
	}
}

// kill ends the server at once and waits for its end.
func (p *process) kill() {
	if p.running() {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// await calls ready until it returns nil. It returns an error if the server or ctx ends first. The
// error quotes the end of the server's output.
func (p *process) await(ctx context.Context, ready func(context.Context) error) error {
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, readyAttempt)
		err := ready(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%w: %s", errExited, p.tail)
		case <-ctx.Done():
			return fmt.Errorf("not ready in time: %w; its last words: %s", errors.Join(ctx.Err(), err), p.tail)
		case <-ticker.C:
		}
	}
}

// server is a server that can stop and start again on its port. The zero value has never started.
type server struct {
	port int

	mu      sync.Mutex
	process *process
}

// start starts a stopped server on its port and returns when ready returns nil. It does nothing if
// the server already runs.
func (s *server) start(
	ctx context.Context, launch func() (*process, error), ready func(context.Context, *process) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process.running() {
		return nil
	}
	p, err := launch()
	if err != nil {
		return err
	}
	if err := ready(ctx, p); err != nil {
		p.kill()
		return err
	}
	s.process = p
	return nil
}

func (s *server) choosePort() error {
	ports, err := freePorts(1)
	if err == nil {
		s.port = ports[0]
	}
	return err
}

// stop sends sig and waits for the end. If ctx ends first, the server is killed and stop returns an
// error.
func (s *server) stop(ctx context.Context, sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process.stop(ctx, sig)
}

// kill ends the server at once and waits for its end.
func (s *server) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process.kill()
}

const (
	readyInterval = 50 * time.Millisecond
	readyAttempt  = 10 * time.Second // a busy machine may need seconds for one answer
	startLimit    = 3 * time.Minute  // limits every start, also if the caller's context has no deadline
	startAttempts = 3                // another process may take a free port before the server binds it
)

// retryStart starts a server. If the server ends by itself, retryStart tries again with new ports.
func retryStart(ctx context.Context, start func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
		err := start(ctx)
		if err == nil || attempt == startAttempts || !errors.Is(err, errExited) || ctx.Err() != nil {
			return err
		}
	}
}

// tailBytes is how much of a server's last output an error quotes.
const tailBytes = 4 << 10

// tail stores the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - tailBytes; extra > 0 {
		t.buf = append(t.buf[:0], t.buf[extra:]...)
	}
	return len(p), nil
}

// String returns the stored text.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := strings.TrimSpace(string(t.buf)); text != "" {
		return text
	}
	return "(no output)"
}

// The kernel uses ports from 32768 (Linux) or 49152 (macOS) for outgoing connections. A server's
// port is below that range. So the port is usually still free when a stopped server starts again.
const (
	firstPort = 15000
	lastPort  = 32000
)

const localhost = "127.0.0.1"

// freePorts returns n different ports on 127.0.0.1 that no process uses now.
func freePorts(n int) ([]int, error) {
	var held []net.Listener // all listeners stay open until the end, so that each port is different
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

// get sends a GET request to a server on this machine. The caller closes the response's body.
func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}
