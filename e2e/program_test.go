package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"projector/e2e/stream"
)

// program is one running projector.
type program struct {
	t       testing.TB
	cmd     *exec.Cmd
	secrets []string
	ended   chan struct{}

	mu     sync.Mutex
	output []string // lines of stderr
	addr   string
}

// command prepares the program with nothing but the given environment.
func command(t testing.TB, env []string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GORACE=halt_on_error=0 exitcode=66"}, env...)
	return cmd
}

// launch starts the program and follows its log. When the test ends it is killed,
// and its log must be free of payload and of secrets.
func launch(t testing.TB, secrets, env []string, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: command(t, env, args...), secrets: secrets, ended: make(chan struct{})}
	read, write := io.Pipe()
	p.cmd.Stderr, p.cmd.Stdout = write, write
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
		_ = p.cmd.Process.Kill()
		<-p.ended
		p.checkLog()
	})
	return p
}

func (p *program) follow(log io.Reader) {
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

// lines are what the program has logged so far.
func (p *program) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output[:len(p.output):len(p.output)]
}

func (p *program) log() string { return strings.Join(p.lines(), "\n") }

var forbidden = regexp.MustCompile(`DATA RACE|panic:|goroutine \d+ \[`)

// checkLog looks for what must never be logged, and prints the log of a failed test.
func (p *program) checkLog() {
	p.t.Helper()
	log := p.log()
	for _, secret := range append([]string{stream.Marker}, p.secrets...) {
		if secret != "" && strings.Contains(log, secret) {
			p.t.Errorf("the log tells a secret or a payload")
		}
	}
	if found := forbidden.FindString(log); found != "" {
		p.t.Errorf("the log has %q", found)
	}
	if p.t.Failed() {
		lines := p.lines()
		p.t.Logf("log of process %d, last lines of %d:\n%s", p.cmd.Process.Pid, len(lines),
			strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %v: %v", s, err)
	}
}

// kill ends the program as kill -9 does.
func (p *program) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	<-p.ended
}

// exit waits for the program's end and answers its exit status.
func (p *program) exit(limit time.Duration) int {
	p.t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ended:
		return p.cmd.ProcessState.ExitCode()
	case <-timer.C:
		p.t.Fatalf("the program has not ended within %s", limit)
		return -1
	}
}

// terminate asks the program to stop, as Kubernetes does, and expects it to obey.
func (p *program) terminate() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if status := p.exit(10 * time.Second); status != 0 {
		p.t.Fatalf("SIGTERM: exit status %d, want 0", status)
	}
}

// get answers status and body of a page; status 0 means that it cannot be had.
func (p *program) get(path string) (int, string) {
	p.mu.Lock()
	addr := p.addr
	p.mu.Unlock()
	if addr == "" {
		return 0, "does not listen yet"
	}
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get("http://" + addr + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// answers is a check for await: path answers with status, and its body contains text.
func (p *program) answers(path string, status int, text string) func() string {
	return func() string {
		select {
		case <-p.ended:
			return "the program has ended"
		default:
		}
		got, body := p.get(path)
		if got == status && strings.Contains(body, text) {
			return ""
		}
		return fmt.Sprintf("%s: %d %s", path, got, body)
	}
}

// logged is a check for await: some line contains all of the texts.
func (p *program) logged(texts ...string) func() string {
	return func() string {
		for _, line := range p.lines() {
			found := true
			for _, text := range texts {
				found = found && strings.Contains(line, text)
			}
			if found {
				return ""
			}
		}
		return fmt.Sprintf("no line of the log has %q", texts)
	}
}

var sample = regexp.MustCompile(`(?m)^([a-z_]+)(\{.*\})? (\S+)$`)

// metrics answers all samples by name and labels, as they stand on the page.
func (p *program) metrics() map[string]float64 {
	p.t.Helper()
	status, body := p.get("/metrics")
	if status != http.StatusOK {
		p.t.Fatalf("/metrics: %d %s", status, body)
	}
	samples := map[string]float64{}
	for _, m := range sample.FindAllStringSubmatch(body, -1) {
		value, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			p.t.Fatalf("/metrics: %s: %v", m[0], err)
		}
		samples[m[1]+m[2]] = value
	}
	return samples
}

// onceLimit is how long a command may take that cannot reach a server.
const onceLimit = 30 * time.Second

// once runs a command to its end; one that takes too long is killed: status -1.
func once(t testing.TB, env []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := command(t, env, args...)
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
