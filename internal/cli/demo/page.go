package demo

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"projector/internal/cli/output"
	"projector/internal/telemetry"
)

// page is what the demo prints for people: aligned, and coloured on a terminal.
// What cannot be written is lost: there is nobody to tell.
type page struct {
	w       io.Writer
	before  func() // makes room: the progress bar may stand where the page goes on
	colours bool
}

func newPage(w io.Writer, before func()) *page {
	return &page{w: w, before: before, colours: telemetry.Colours(output.IsTerminal(w))}
}

func (p *page) paint(colour, text string) string { return output.Painted(p.colours, colour, text) }

func (p *page) printf(format string, args ...any) {
	p.before()
	_, _ = fmt.Fprintf(p.w, format, args...)
}

// title begins the page or a part of it.
func (p *page) title(text string) { p.printf("%s\n", p.paint(output.Bold, text)) }

// part begins a part of the page.
func (p *page) part(text string) {
	p.printf("\n")
	p.title(text)
}

// fact is a line with a name and what there is to say.
func (p *page) fact(name, text string) { p.printf("  %-12s %s\n", name, text) }

// count is a line with a name and a number.
func (p *page) count(name string, n int, remark string) {
	if remark != "" {
		remark = p.paint(output.Dim, "  "+remark)
	}
	p.printf("  %-22s %10s%s\n", name, grouped(n), remark)
}

// maxFaults is how many differences are told one by one.
const maxFaults = 10

// finding is a line that says whether something is right, and what is not.
func (p *page) finding(right string, faults []string) {
	if len(faults) == 0 {
		p.printf("  %s  %s\n", p.paint(output.Green, "ok"), right)
		return
	}
	p.printf("  %s  %s: %s differ\n", p.paint(output.Red, "NO"), right, grouped(len(faults)))
	for _, fault := range faults[:min(maxFaults, len(faults))] {
		p.printf("      %s\n", fault)
	}
	if more := len(faults) - maxFaults; more > 0 {
		p.printf("      … and %s more\n", grouped(more))
	}
}

// grouped is a number with its thousands set apart: 1,234,567.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// progressBar shows how far a step is: a bar on a terminal, else a line every few
// seconds. Log lines go through it, so that they do not end up in the bar.
type progressBar struct {
	bar bool

	mu    sync.Mutex
	w     io.Writer
	label string
	since time.Time // when the step began
	last  time.Time // when it was shown last
	drawn bool
	ended bool
}

func newProgressBar(w io.Writer) *progressBar { return &progressBar{w: w, bar: output.MovesCursor(w)} }

const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 3 * time.Second
	barWidth  = 24
	eraseLine = "\r\x1b[K"
)

// show tells how far the step is. Without a total there is nothing to measure.
func (b *progressBar) show(label string, done, total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, every := time.Now(), lineEvery
	if b.bar {
		every = barEvery
	}
	begins := b.label != label
	if begins {
		b.label, b.since, b.last = label, now, now
	}
	if !begins && now.Sub(b.last) < every || begins && !b.bar {
		return
	}
	b.last = now
	text := label
	if total > 0 {
		text = fmt.Sprintf("%s %s of %s, %s/s", label, grouped(done), grouped(total), rate(done, now.Sub(b.since)))
	}
	if !b.bar {
		_, _ = fmt.Fprintln(b.w, text)
		return
	}
	if total > 0 {
		full := barWidth * done / total
		text = "[" + strings.Repeat("#", full) + strings.Repeat("-", barWidth-full) + "] " + text
	}
	b.drawn = true
	_, _ = fmt.Fprint(b.w, eraseLine+"  "+text)
}

// clear takes the bar away.
func (b *progressBar) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
}

func (b *progressBar) erase() {
	if b.drawn {
		b.drawn = false
		_, _ = fmt.Fprint(b.w, eraseLine)
	}
}

// end takes the bar away for good. Log lines that come later are dropped: a Kafka
// client may have something to say after it was closed.
func (b *progressBar) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	b.ended = true
}

// Write implements io.Writer for the log.
func (b *progressBar) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return len(line), nil
	}
	b.erase()
	return b.w.Write(line)
}
