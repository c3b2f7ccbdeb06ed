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
	"strconv"
	"strings"

	"projector/internal/devstack"
)

// A limit is a measurement without the projector (see main.go). It runs in its own process. The
// process prepares the work, prints "ready" and waits for a line. It then works and prints its
// answer as a line of JSON. It exits when its input is closed.

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

// limit runs this program as a child process with the given arguments and measures it.
func (s *stack) limit(ctx context.Context, m *meter, args ...string) (run Run, err error) {
	cmd := exec.CommandContext(ctx, s.self, args...) //nolint:gosec // G204: this program
	in, err := cmd.StdinPipe()
	if err != nil {
		return run, err
	}
	output, writer := io.Pipe()
	p, err := devstack.StartProgram(cmd, writer)
	if err != nil {
		return run, err
	}
	go func() {
		<-p.Ended()
		_ = writer.CloseWithError(io.ErrUnexpectedEOF)
	}()
	m.subjects = []int{p.PID()}
	out := bufio.NewReader(output)
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
		_, run.PeakMiB = memory(p.PID())
		run.Seconds, run.Events = a.Seconds, a.Events
	}
	_ = in.Close()
	_ = output.Close() // otherwise the child could wait for a reader and never end
	if err := errors.Join(err, p.Wait()); err != nil {
		return run, fmt.Errorf("%s: %w", args[0], err)
	}
	return run, nil
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
		switch name {
		case "VmRSS":
			now = kib(value) / 1024
		case "VmHWM":
			peak = kib(value) / 1024
		}
	}
	return now, peak
}

// kib returns the number in a value of /proc in KiB, such as "1024 kB", or 0.
func kib(value string) float64 {
	n, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
	return n
}
