// Package process runs the built projector as a process of its own and listens to
// what it says: log, pages, metrics, exit status.
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
	// Secrets and payload that must never be in a log.
	Secrets []string
	// Stdout takes what is written to stdout; nil: it is part of the log.
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

// BuildCommand builds a command to path.
func BuildCommand(ctx context.Context, command, path string, more ...string) error {
	args := append([]string{"build", "-buildvcs=false", "-o", path}, more...)
	if out, err := exec.CommandContext(ctx, "go", append(args, command)...).CombinedOutput(); err != nil {
		return errors.Join(err, errors.New(string(out)))
	}
	return nil
}

// Migrate migrates a database with a built projector, for devtest.Main.
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

// command prepares the program with nothing but the given environment.
func (b Binary) command(t testing.TB, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), b.Path, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GORACE=halt_on_error=0 exitcode=66"}, env...)
	return cmd
}

// Launch starts the program and follows its log. When the test ends it is killed,
// and its log must be free of payload and of secrets.
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
		runtime.LockOSThread() // a parent-death signal follows the thread
		started <- p.cmd.Start()
		_ = p.cmd.Wait() // the exit status is asked for in exit
		_ = write.Close()
	}()
	go p.follow(read)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			p.tellGoroutines()
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

// Lines are what the program has logged so far.
func (p *Process) Lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output[:len(p.output):len(p.output)]
}

// Log is all of it in one text.
func (p *Process) Log() string { return strings.Join(p.Lines(), "\n") }

var forbidden = regexp.MustCompile(`DATA RACE|panic:|goroutine \d+ \[`)

// checkLog looks for what must never be logged, and prints the log of a failed test.
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

// tellGoroutines ends a program that still runs, frozen or not, and prints what each of its
// goroutines waits for: a program that does nothing any more logs nothing either.
func (p *Process) tellGoroutines() {
	select {
	case <-p.ended:
		return
	default:
	}
	logged := len(p.Lines())
	_ = p.cmd.Process.Signal(syscall.SIGQUIT) // Go's runtime prints them
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.t.Logf("what process %d was doing:\n%s", p.cmd.Process.Pid, strings.Join(p.output[logged:], "\n"))
	p.output = p.output[:logged] // the rest is no part of its log
}

// Signal sends a signal.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %v: %v", s, err)
	}
}

// Freeze stops the process by SIGSTOP, and returns when it does nothing any more: a busy machine
// delivers the signal late.
func (p *Process) Freeze() {
	p.t.Helper()
	p.Signal(syscall.SIGSTOP)
	wait.Until(p.t, 30*time.Second, "the process is stopped", func() string {
		if is, err := stopped(p.cmd.Process.Pid); err != nil || !is {
			return fmt.Sprintf("it runs (%v)", err)
		}
		return ""
	})
}

// Kill ends the program as kill -9 does.
func (p *Process) Kill() {
	p.t.Helper()
	p.Signal(syscall.SIGKILL)
	<-p.ended
}

// Exit waits for the program's end and answers its exit status.
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

// Terminate asks the program to stop, as Kubernetes does, and expects it to obey.
func (p *Process) Terminate() {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	if status := p.Exit(10 * time.Second); status != 0 {
		p.t.Fatalf("SIGTERM: exit status %d, want 0", status)
	}
}

// onceLimit is how long a command may take that cannot reach a server.
const onceLimit = 30 * time.Second

// Once runs a command to its end; one that takes too long is killed: status -1.
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

// Ended is closed when the program has.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// PID is its process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }
