package output

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	file, isFile := Unwrapped(w).(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}

// MovesCursor reports whether w is a terminal on which a line can be overwritten.
func MovesCursor(w io.Writer) bool { return IsTerminal(w) && os.Getenv("TERM") != "dumb" }

// terminalWidth returns the width of w, or 0 if the width is not known. It also returns whether w
// is a terminal.
func terminalWidth(w io.Writer) (int, bool) {
	file, isFile := Unwrapped(w).(*os.File)
	if !isFile || !IsTerminal(w) {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, true
	}
	return width, true
}

// These are the terminal codes of text styles.
const (
	Bold  = "1"
	Dim   = "2"
	Red   = "31"
	Green = "32"
)

// Painted adds a colour to text if colours is true.
func Painted(colours bool, colour, text string) string {
	if !colours {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Progress shows the progress of a long command on stderr. On a terminal it overwrites one line.
// Otherwise it prints a line every few seconds. It is safe for concurrent use.
type Progress struct {
	out      io.Writer
	terminal bool

	mu    sync.Mutex
	what  string
	last  time.Time
	shown bool
	ended bool
}

const (
	progressOnTerminal = 200 * time.Millisecond
	progressInLog      = 5 * time.Second
)

// NewProgress returns a Progress that shows a task on w. The text what names the task.
func NewProgress(w io.Writer, what string) *Progress {
	return &Progress{out: w, what: what, terminal: MovesCursor(w), last: time.Now()}
}

// Step starts the next task. A terminal shows its name at once.
func (p *Progress) Step(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.what, p.last = what, time.Now(); p.terminal {
		p.show(what)
	}
}

// Update shows the progress, unless it was shown a moment ago. A total of 0 means that the total is
// not known.
func (p *Progress) Update(done, total int64) {
	every := progressInLog
	if p.terminal {
		every = progressOnTerminal
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.last) < every {
		return
	}
	p.last = time.Now()
	line := fmt.Sprintf("%s: %d", p.what, done)
	if total > 0 {
		line = fmt.Sprintf("%s: %d of %d (%d %%)", p.what, done, total, 100*done/total)
	}
	p.show(line)
}

func (p *Progress) show(line string) {
	p.clear()
	p.shown = true
	_, _ = io.WriteString(p.out, line)
	if p.terminal {
		Control(p.out, "\r")
	} else {
		_, _ = io.WriteString(p.out, "\n")
	}
}

func (p *Progress) clear() {
	if p.terminal && p.shown {
		Control(p.out, "\r\x1b[K")
	}
	p.shown = false
}

// Done clears the terminal's line.
func (p *Progress) Done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

// Write implements io.Writer for log lines on the same terminal.
func (p *Progress) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return len(line), nil
	}
	p.clear()
	return p.out.Write(line)
}

// End clears the terminal's line and drops later log lines, because a Kafka client may log after it
// was closed.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.ended = true
}
