package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"sync"
)

// A limit is measured in a process of its own. It prepares, says "ready", waits for
// a line, works, prints its answer as a line of JSON, and ends when its input does.

// answer is what a limit tells when it is done.
type answer struct {
	Seconds float64
	Events  int
}

// serve is the limit's side.
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
	_, _ = in.ReadString('\n') // its memory is read until then
	return nil
}

// child is a started process that ends when this one does.
type child struct {
	cmd  *exec.Cmd
	done chan error // receives how it ended
}

// startChild starts cmd. The thread that forks is kept until the child has ended: the
// signal that ends the child with its parent follows that thread.
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

// limit runs this program's command args as a limit, and measures it.
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
	if _, err = out.ReadString('\n'); err == nil { // ready
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

// tail keeps the end of a program's output, for when it fails, and its beginning.
type tail struct {
	mu         sync.Mutex
	head, text []byte
}

// keepOutput is how much of either is kept.
const keepOutput = 4 << 10

// Write implements io.Writer.
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
