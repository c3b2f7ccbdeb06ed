package e2e_test

import (
	"testing"
	"time"

	"projector/e2e/process"
	"projector/internal/testbank"
)

// program is one running projector.
type program struct {
	t testing.TB
	*process.Process
}

// The function built returns the program under test. The test fails if the program's log contains
// payloads or the secrets.
func built(t testing.TB, secrets ...string) process.Binary {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return process.Binary{Path: path, Secrets: append(secrets, testbank.Marker)}
}

func launch(t testing.TB, secrets, env []string, args ...string) *program {
	t.Helper()
	return &program{t, built(t, secrets...).Launch(t, env, args...)}
}

func once(t testing.TB, env []string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	return built(t).Once(t, env, args...)
}

func (p *program) lines() []string               { return p.Lines() }
func (p *program) log() string                   { return p.Log() }
func (p *program) kill()                         { p.t.Helper(); p.Kill() }
func (p *program) exit(limit time.Duration) int  { p.t.Helper(); return p.Exit(limit) }
func (p *program) terminate()                    { p.t.Helper(); p.Terminate() }
func (p *program) get(path string) (int, string) { return p.Get(path) }
func (p *program) metrics() map[string]float64   { p.t.Helper(); return p.Metrics() }

func (p *program) answers(path string, status int, text string) func() string {
	return p.Answers(path, status, text)
}

func (p *program) logged(texts ...string) func() string { return p.Logged(texts...) }
