package pace

import (
	"context"
	"runtime"
	"testing"
	"time"
)

func TestOneProcessorIsEnoughWhileLittleIsUsed(t *testing.T) {
	var p Processors
	for _, step := range []struct {
		what  string
		usage float64
		times int
		one   bool
	}{
		{"catching up", 1.8, 3, false},
		{"calm, not for long", 0.1, calmFor - 1, false},
		{"neither calm nor busy", 0.4, 1, false},
		{"calm, not for long again", 0.1, calmFor - 1, false},
		{"calm for long", 0.1, 1, true},
		{"neither calm nor busy", 0.4, calmFor, true},
		{"busy with one", 0.9, 1, false},
		{"calm, not for long after that", 0.1, calmFor - 1, false},
		{"calm for long after that", 0.1, 1, true},
	} {
		for range step.times {
			if one := p.One(step.usage); one != step.one && step.times == 1 {
				t.Errorf("%s: one is enough: %t", step.what, one)
			}
		}
		if p.one != step.one {
			t.Errorf("%s: in the end one is enough: %t", step.what, p.one)
		}
	}
}

// TestProcessorsAreGivenBack shows that the program runs on one processor while it uses little CPU,
// as this package's tests do. When the context ends, all processors are used again.
func TestProcessorsAreGivenBack(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	if runtime.GOMAXPROCS(0) == 1 {
		runtime.GOMAXPROCS(2)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { SaveProcessors(ctx); close(ended) }()
	for end := time.Now().Add(2 * time.Minute); runtime.GOMAXPROCS(0) != 1 && time.Now().Before(end); {
		_ = Sleep(t.Context(), usageEvery)
	}
	if n := runtime.GOMAXPROCS(0); n != 1 {
		t.Errorf("%d processors although little is used", n)
	}
	cancel()
	<-ended
	runtime.SetDefaultGOMAXPROCS()
	if n := runtime.GOMAXPROCS(0); n == 1 && runtime.NumCPU() > 1 {
		t.Errorf("%d of %d processors at the end", n, runtime.NumCPU())
	}
}
