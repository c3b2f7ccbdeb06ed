package demo

import (
	"fmt"
	"io"
	"strconv"

	"projector/internal/cli/output"
	"projector/internal/telemetry"
)

// page prints the demo's text, in colours on a terminal. It ignores write errors.
type page struct {
	w       io.Writer
	before  func() // clears the progress line
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

func (p *page) title(text string) { p.printf("%s\n", p.paint(output.Bold, text)) }

func (p *page) part(text string) {
	p.printf("\n")
	p.title(text)
}

func (p *page) fact(name, text string) { p.printf("  %-12s %s\n", name, text) }

func (p *page) count(name string, n int, remark string) {
	if remark != "" {
		remark = p.paint(output.Dim, "  "+remark)
	}
	p.printf("  %-22s %10s%s\n", name, grouped(n), remark)
}

// maxFaults is how many differences are printed one by one.
const maxFaults = 10

// finding prints the result of one check, and after it the first faults. The argument text says
// what was checked.
func (p *page) finding(text string, faults []string) {
	if len(faults) == 0 {
		p.printf("  %s  %s\n", p.paint(output.Green, "ok"), text)
		return
	}
	p.printf("  %s  %s: %s differ\n", p.paint(output.Red, "NO"), text, grouped(len(faults)))
	for _, fault := range faults[:min(maxFaults, len(faults))] {
		p.printf("      %s\n", fault)
	}
	if more := len(faults) - maxFaults; more > 0 {
		p.printf("      … and %s more\n", grouped(more))
	}
}

// grouped formats a number with separators: 1,234,567.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
