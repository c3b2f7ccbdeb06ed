package devstack

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// Program is a program that runs beside the servers and ends with this process, as
// they do: what they are started for.
type Program struct{ process *process }

// StartProgram starts cmd, which must not be started yet. Its output goes to log,
// which may be nil.
func StartProgram(cmd *exec.Cmd, log io.Writer) (*Program, error) {
	p, err := startProcess(cmd, syscall.SIGTERM, serverLog(log))
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return &Program{p}, nil
}

// Ended is closed when the program has ended.
func (p *Program) Ended() <-chan struct{} { return p.process.done }

// Output is the end of what the program has printed.
func (p *Program) Output() string { return p.process.tail.String() }

// Stop asks the program to end, by SIGTERM, and waits for it. An error says that it
// had to be killed, or ended by itself or with a status other than 0.
func (p *Program) Stop(ctx context.Context) error {
	if !p.process.running() {
		return fmt.Errorf("ended by itself: %s; its last words: %s", p.process.cmd.ProcessState, p.Output())
	}
	if err := p.process.stop(ctx, syscall.SIGTERM); err != nil {
		return err
	}
	if state := p.process.cmd.ProcessState; !state.Success() {
		return fmt.Errorf("%s; its last words: %s", state, p.Output())
	}
	return nil
}

// Kill ends the program at once, if it has not ended.
func (p *Program) Kill(context.Context) error {
	p.process.kill()
	return nil
}
