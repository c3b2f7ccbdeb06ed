//go:build failpoints

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

var (
	mu    sync.Mutex // guards armed
	armed = parse(os.Getenv("PROJECTOR_FAILPOINTS"))
)

// point is a failpoint that is armed with an action.
type point struct {
	action string
	left   int // how many more times the point must be reached before the action
}

// parse reads the points. The package comment describes the format of spec. parse panics if spec is
// not valid, because a test would prove nothing if its point were not armed.
func parse(spec string) map[string]*point {
	points := map[string]*point{}
	for _, one := range strings.FieldsFunc(spec, func(r rune) bool { return r == ',' }) {
		name, what, _ := strings.Cut(one, "=")
		action, count, _ := strings.Cut(what, "@")
		n, err := strconv.Atoi(count)
		if err != nil || n < 1 || action != "kill" && action != "freeze" {
			panic(fmt.Sprintf("PROJECTOR_FAILPOINTS: %q is not name=kill@n or name=freeze@n", one))
		}
		points[name] = &point{action, n}
	}
	return points
}

// Here executes the action of the named point when the point is reached for the n-th time.
func Here(name string) {
	mu.Lock()
	p := armed[name]
	if p == nil {
		mu.Unlock()
		return
	}
	p.left--
	due := p.left == 0
	if due {
		delete(armed, name)
		record(name)
		if p.action == "kill" { // with the lock, so no other goroutine passes a point unlogged
			act(syscall.SIGKILL)
		}
	}
	mu.Unlock()
	if due {
		act(syscall.SIGSTOP)
	}
}

// record appends the name to the log.
func record(name string) {
	path := os.Getenv("PROJECTOR_FAILPOINTS_LOG")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // G304: the test names the file
	if err != nil {
		panic(err)
	}
	if _, err := fmt.Fprintln(f, name); err != nil {
		panic(err)
	}
	if err := f.Close(); err != nil {
		panic(err)
	}
}

func act(s syscall.Signal) {
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		panic(err)
	}
	if s == syscall.SIGKILL {
		select {} // wait, because the signal may arrive late
	}
}
