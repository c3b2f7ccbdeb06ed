package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// A limit is a measurement without the projector (see main.go). It runs in its own process. The
// process prepares the work, prints "ready" and waits for a line. It then works and prints its
// answer as a line of JSON. It exits when its input is closed.

// answer is the result of a limit.
type answer struct {
	Seconds float64
	Events  int
}

// serve runs in the child process of a limit and follows the protocol above.
func serve(std *streams, work func() (answer, error)) error {
	_, _ = fmt.Fprintln(std.out, "ready")
	in := bufio.NewReader(std.in)
	if _, err := in.ReadString('\n'); err != nil {
		return errors.New("nobody waits for the answer")
	}
	a, err := work()
	if err != nil {
		return err
	}
	if err := json.NewEncoder(std.out).Encode(a); err != nil {
		return err
	}
	_, _ = in.ReadString('\n') // the process stays alive until the parent has read its memory use
	return nil
}

// child is a process that ends when this process ends.
type child struct {
	cmd  *exec.Cmd
	done chan error // receives the result of Wait
}

// startChild starts cmd in a thread that lives until the child has ended, because the parent-death
// signal is sent when this thread ends.
func startChild(cmd *exec.Cmd) (*child, error) {
	cmd.SysProcAttr = dieWithParent()
	c := &child{cmd: cmd, done: make(chan error, 1)}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			c.done <- cmd.Wait()
		}
	}()
	return c, <-started
}

func (c *child) pid() int { return c.cmd.Process.Pid }

// limit runs this program as a child process with the given arguments and measures it.
func (s *stack) limit(ctx context.Context, m *meter, args ...string) (run Run, err error) {
	cmd := exec.CommandContext(ctx, s.self, args...) //nolint:gosec // G204: this program
	in, err := cmd.StdinPipe()
	if err != nil {
		return run, err
	}
	stdout, stdoutWriter := io.Pipe()
	tail := &tail{}
	cmd.Stdout, cmd.Stderr = stdoutWriter, tail
	c, err := startChild(cmd)
	if err != nil {
		return run, err
	}
	ended := make(chan error, 1)
	go func() {
		err := <-c.done
		_ = stdoutWriter.CloseWithError(io.ErrUnexpectedEOF)
		ended <- err
	}()
	m.subjects = []int{c.pid()}
	out := bufio.NewReader(stdout)
	if _, err = out.ReadString('\n'); err == nil { // the line "ready"
		m.begin()
		_, err = io.WriteString(in, "\n")
	}
	var a answer
	if err == nil {
		err = json.NewDecoder(out).Decode(&a)
	}
	if err == nil {
		run.CPU, run.Disturbed = m.end()
		_, run.PeakMiB = memory(c.pid())
		run.Seconds, run.Events = a.Seconds, a.Events
	}
	_ = in.Close()
	err = errors.Join(err, <-ended)
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", args[0], err, tail)
	}
	return run, err
}

// tail stores the beginning and the end of a program's output.
type tail struct {
	mu         sync.Mutex
	head, text []byte
}

// keepOutput is the size of each of the two parts in bytes.
const keepOutput = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.head = append(t.head, p[:min(len(p), keepOutput-len(t.head))]...)
	t.text = append(t.text, p...)
	if len(t.text) > keepOutput {
		t.text = append(t.text[:0], t.text[len(t.text)-keepOutput:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

func (t *tail) beginning() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.head)
}

// clockTicks is the unit of CPU times in /proc (USER_HZ). It is 100 on every architecture that Go
// supports on Linux.
const clockTicks = 100

// procStat returns the fields of /proc/PID/stat after the command name, or nil if the process does
// not exist.
func procStat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

func ticks(fields []string) (seconds float64) {
	for _, field := range fields {
		n, _ := strconv.ParseFloat(field, 64)
		seconds += n / clockTicks
	}
	return seconds
}

// processCPU returns the CPU time of a process in seconds, or 0 if the process has ended.
func processCPU(pid int) float64 {
	if f := procStat(pid); len(f) > 13 {
		return ticks(f[11:13])
	}
	return 0
}

// treeCPU returns the CPU time of a process and its children, including children that have ended.
func treeCPU(root int) float64 {
	var sum float64
	parent := strconv.Itoa(root)
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if f := procStat(pid); len(f) > 15 && (pid == root || f[1] == parent) {
			sum += ticks(f[11:15])
		}
	}
	return sum
}

// machineCPU returns the CPU time that the whole machine used, and the time that the hypervisor
// gave to other virtual machines, in seconds.
func machineCPU() (busy, steal float64) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	f := strings.Fields(line) // the line is: cpu user nice system idle iowait irq softirq steal …
	if len(f) < 9 {
		return 0, 0
	}
	return ticks(f[1:4]) + ticks(f[6:8]), ticks(f[8:9])
}

// memory returns a process's resident set, current and peak, in MiB. The peak comes from VmHWM,
// because the peak of getrusage would include the parent that forked the process.
func memory(pid int) (now, peak float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch name {
		case "VmRSS":
			now = kib / 1024
		case "VmHWM":
			peak = kib / 1024
		}
	}
	return now, peak
}
