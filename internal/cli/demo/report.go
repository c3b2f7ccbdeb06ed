package demo

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"projector/internal/cli/output"
	"projector/internal/telemetry"
	"projector/projection"
	"projector/projection/event"
)

func (d *demo) report(f *findings) {
	p := d.page
	p.part("Throughput")
	p.fact("events/s", fmt.Sprintf("%s (%s records in %s, %s)", p.paint(output.Bold, rate(d.records, d.took)),
		grouped(d.records), d.took.Round(time.Millisecond), d.sharing()))
	p.part("Outcomes")
	for _, outcome := range projection.Outcomes() {
		p.count(outcome.String(), f.counted.outcomes[outcome.String()], d.remark(outcome, f))
	}
	p.part("Dead letters by class")
	for _, class := range event.Classes() {
		remark := ""
		if class == event.RejectedByDatabase && !d.ownDatabase {
			remark = "left out on a database that is not the demo's"
		}
		p.count(string(class), f.classes[string(class)], remark)
	}
	d.reportStale(f.stale)
	p.part("Check against an independent ledger")
	p.finding(grouped(f.checked)+" accounts: balance, version, status and what they wait for", f.accounts)
	p.finding(grouped(len(d.ledger.DeadLetters))+" dead letters: each record with its class, no other", f.deadLetters)
	p.finding(grouped(d.records)+" records: one outcome each", f.outcomes)
	if left := d.leftovers(); len(left) > 0 {
		p.part("Left on your servers")
		for _, what := range left {
			p.printf("  %s\n", what)
		}
	}
	d.reportNext(f.stale)
}

// sharing names the servers that the demo has started on this machine.
func (d *demo) sharing() string {
	var here []string
	if d.ownKafka {
		here = append(here, "the broker")
	}
	if d.ownDatabase {
		here = append(here, "PostgreSQL")
	}
	if len(here) == 0 {
		return "on your servers"
	}
	return strings.Join(here, " and ") + " on the same machine"
}

func (d *demo) remark(outcome projection.Outcome, f *findings) string {
	switch {
	case outcome == projection.Applied:
		return fmt.Sprintf("and %s that waited for a gap which was filled", grouped(f.counted.healed))
	case outcome == projection.Duplicate && f.recounted > 0:
		return fmt.Sprintf("came again from Kafka: %s", grouped(f.recounted))
	case outcome == projection.DeadLettered:
		return d.remarkOnDeadLetters(f)
	}
	return ""
}

func (d *demo) remarkOnDeadLetters(f *findings) string {
	var remarks []string
	if again := len(d.ledger.DeadLetters) - d.expected()[projection.DeadLettered.String()]; again > 0 {
		remarks = append(remarks, fmt.Sprintf("waited and then failed, with a second class: %s", grouped(again)))
	}
	if f.repeats > 0 {
		remarks = append(remarks, fmt.Sprintf("published once more: %s", grouped(f.repeats)))
	}
	return strings.Join(remarks, ", ")
}

// maxStale is how many stale accounts are listed.
const maxStale = 20

func (d *demo) reportStale(stale []staleAccount) {
	p := d.page
	p.part("Stale accounts: " + grouped(len(stale)))
	if len(stale) == 0 {
		return
	}
	width := len(slices.MaxFunc(stale, func(a, b staleAccount) int { return len(a.ID) - len(b.ID) }).ID)
	p.printf("%s\n", p.paint(output.Dim, fmt.Sprintf("  %-*s %9s %12s %9s  %s", width, "account", "version", "waits for", "waiting", "because of")))
	for _, s := range stale[:min(maxStale, len(stale))] {
		version := "-"
		if s.Version != nil {
			version = strconv.FormatInt(*s.Version, 10)
		}
		p.printf("  %-*s %9s %12d %9d  %s\n", width, s.ID, version, s.Waits, s.Events, s.Class)
	}
	if more := len(stale) - maxStale; more > 0 {
		p.printf("  … and %s more\n", grouped(more))
	}
}

func (d *demo) leftovers() []string {
	var left []string
	if !d.ownKafka {
		left = append(left, "topics "+d.run.Topic+" and "+d.run.DeadLetterTopic()+", consumer group "+d.run.GroupName())
	}
	if !d.ownDatabase {
		left = append(left, "the schema, with accounts "+d.accountPrefix+"* and the positions of consumer group "+d.run.GroupName())
	}
	return left
}

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
