package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"projector/internal/devstack"
	"projector/internal/pace"
)

// TestALimitIsMeasured uses a shell in place of this program.
func TestALimitIsMeasured(t *testing.T) {
	s := &stack{self: "/bin/sh"}
	run, err := s.limit(t.Context(), &meter{}, "-c", `echo ready; read go; echo '{"Seconds":2,"Events":7}'; read end; exit 0`)
	if err != nil || run.Seconds != 2 || run.Events != 7 || run.PeakMiB == 0 {
		t.Errorf("%+v, %v", run, err)
	}
	for script, want := range map[string]string{
		"echo bench: no server >&2; exit 1":             "no server",
		"echo ready; read go; echo bench: lost; exit 1": "lost",
		"exit 3": "status 3",
	} {
		if _, err := s.limit(t.Context(), &meter{}, "-c", script); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", script, err)
		}
	}
}

func TestAProgramThatEndsByItselfIsReported(t *testing.T) {
	began := &beginning{}
	start := func(script string) *program {
		started, err := devstack.StartProgram(exec.CommandContext(t.Context(), "/bin/sh", "-c", script), began)
		if err != nil {
			t.Fatal(err)
		}
		return &program{started, began}
	}
	p := start("echo out of luck; exit 1")
	<-p.Ended()
	if _, err := p.stop(); p.alive() == nil || err == nil || !strings.Contains(err.Error(), "out of luck") || began.String() != "out of luck\n" {
		t.Errorf("%v, %q", err, began)
	}
	p = start("trap 'exit 0' TERM; echo set; sleep 60 >/dev/null 2>&1 & wait")
	for !strings.Contains(began.String(), "set") {
		if err := pace.Sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	if took, err := p.stop(); err != nil || took <= 0 {
		t.Errorf("%s, %v", took, err)
	}
}
