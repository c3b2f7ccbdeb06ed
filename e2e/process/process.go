// Package process runs the built projector as a separate process and reads its log, pages, metrics
// and exit status.
package process

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"projector/e2e/wait"
)

// Binary is a built projector.
type Binary struct {
	Path string
	// Secrets are texts that must never be in a log.
	Secrets []string
	// Stdout receives the program's stdout. If it is nil, stdout is part of the log.
	Stdout io.Writer
}

// Process is one running projector.
type Process struct {
	t       testing.TB
	cmd     *exec.Cmd
	secrets []string
	ended   chan struct{}

	mu     sync.Mutex
	output []string // lines of stderr
	addr   string
}

// Build builds the projector to path with further arguments of go build.
func Build(ctx context.Context, path string, more ...string) error {
	return BuildCommand(ctx, "projector/cmd/projector", path, more...)
}

// BuildCommand builds the package command to path. The program has no symbols for debuggers, like a
// test binary of go test, because linking them takes a third of the time. Its stack traces are the
// same.
func BuildCommand(ctx context.Context, command, path string, more ...string) error {
	args := append([]string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", path}, more...)
	if out, err := exec.CommandContext(ctx, "go", append(args, command)...).CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	return nil
}

// Migrate returns a function for devtest.Main that migrates a database with a built projector.
func Migrate(build func() (string, error)) func(ctx context.Context, databaseURL string) error {
	return func(ctx context.Context, databaseURL string) error {
		path, err := build()
		if err != nil {
			return err
		}
		out, err := exec.CommandContext(ctx, path, "migrate", "--database-url="+databaseURL).CombinedOutput()
		if err != nil {
			return fmt.Errorf("projector migrate: %w: %s", err, out)
		}
		return nil
	}
}

// command returns the program as a command that has not started. Its environment has only PATH,
// HOME, GORACE and the given variables.
func (b Binary) command(t testing.TB, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), b.Path, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GORACE=halt_on_error=0 exitcode=66"}, env...)
	return cmd
}

// Launch starts the program and collects its log. When the test ends, Launch kills the program and
// checks that its log contains no payload and no secrets.
func (b Binary) Launch(t testing.TB, env []string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, cmd: b.command(t, env, args...), secrets: b.Secrets, ended: make(chan struct{})}
	read, write := io.Pipe()
	p.cmd.Stderr, p.cmd.Stdout = write, write
	if b.Stdout != nil {
		p.cmd.Stdout = b.Stdout
	}
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel sends the signal of dieWithParent when this thread ends
		started <- p.cmd.Start()
		_ = p.cmd.Wait() // Exit reports the status
		_ = write.Close()
	}()
	go p.follow(read)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			p.printGoroutines()
		}
		_ = p.cmd.Process.Kill()
		<-p.ended
		p.checkLog()
	})
	return p
}

func (p *Process) follow(log io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		var entry struct{ Msg, HTTP string }
		p.mu.Lock()
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "starting" {
			p.addr = entry.HTTP
		}
		p.output = append(p.output, line)
		p.mu.Unlock()
	}
}

// Lines returns the log lines so far.
func (p *Process) Lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output[:len(p.output):len(p.output)]
}

// Log returns all lines as one text.
func (p *Process) Log() string { return strings.Join(p.Lines(), "\n") }

var forbidden = regexp.MustCompile(`DATA RACE|panic:|goroutine \d+ \[`)

// checkLog fails the test if the log contains a payload, a secret, a data race or a panic. If the
// test has failed, it prints the end of the log.
func (p *Process) checkLog() {
	p.t.Helper()
	log := p.Log()
	for _, secret := range p.secrets {
		if secret != "" && strings.Contains(log, secret) {
			p.t.Errorf("the log tells a secret or a payload")
		}
	}
	if found := forbidden.FindString(log); found != "" {
		p.t.Errorf("the log has %q", found)
	}
	if p.t.Failed() {
		lines := p.Lines()
		p.t.Logf("log of process %d, last lines of %d:\n%s", p.cmd.Process.Pid, len(lines),
			strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
}

// printGoroutines ends a program that still runs or is frozen. It prints the stack of each
// goroutine. A blocked program logs nothing, so the log alone is not enough.
func (p *Process) printGoroutines() {
	select {
	case <-p.ended:
		return
	default:
	}
	logged := len(p.Lines())
	_ = p.cmd.Process.Signal(syscall.SIGQUIT) // Go's runtime then prints the stacks
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.t.Logf("what process %d was doing:\n%s", p.cmd.Process.Pid, strings.Join(p.output[logged:], "\n"))
	p.output = p.output[:logged] // the stacks are not part of the program's log
}

// Signal sends a signal to the process.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %v: %v", s, err)
	}
}

// Freeze stops the process by SIGSTOP and waits until the process has stopped, because a busy
// machine can deliver the signal late.
func (p *Process) Freeze() {
	p.t.Helper()
	p.Signal(syscall.SIGSTOP)
	wait.Until(p.t, 3*time.Minute, "the process is stopped", func() string {
		if is, err := stopped(p.cmd.Process.Pid); err != nil || !is {
			return fmt.Sprintf("it runs (%v)", err)
		}
		return ""
	})
}

// Kill sends SIGKILL.
func (p *Process) Kill() {
	p.t.Helper()
	p.Signal(syscall.SIGKILL)
	<-p.ended
}

// Exit waits for the end of the program and returns its exit status.
func (p *Process) Exit(limit time.Duration) int {
	p.t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-timer.C:
		p.t.Fatalf("the program has not ended within %s:\n%s", limit, p.Log())
		return -1
	}
}

// stopLimit is the terminationGracePeriodSeconds in deploy/kubernetes. The program needs at most 10 s,
// but a busy machine is slow.
const stopLimit = 30 * time.Second

// Terminate sends SIGTERM, as Kubernetes does, and expects exit status 0 within the time limit.
func (p *Process) Terminate() {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	if status := p.Exit(stopLimit); status != 0 {
		p.t.Fatalf("SIGTERM: exit status %d, want 0", status)
	}
}

// onceLimit is much longer than the time that a command needs to give up on an unreachable server,
// because a busy machine is slow.
const onceLimit = 2 * time.Minute

// Once runs a command to its end. It kills a command that exceeds the limit and returns status -1.
func (b Binary) Once(t testing.TB, env []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := b.command(t, env, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tooLong := time.AfterFunc(onceLimit, func() { _ = cmd.Process.Kill() })
	defer tooLong.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

// Ended returns a channel that is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }
