package main

import "time"

// point is a step forward of a catch-up.
type point struct {
	at       time.Time
	durable  int
	resident float64 // MiB
}

// trace is a catch-up as it was seen from outside.
type trace struct {
	began    time.Time
	points   []point // the steps; resident is the highest seen since the step before
	resident float64 // as read last
	highest  float64 // since the last step
}

func (t *trace) add(at time.Time, durable int) {
	if t.began.IsZero() {
		t.began = at
	}
	t.highest = max(t.highest, t.resident)
	before := 0
	if n := len(t.points); n > 0 {
		before = t.points[n-1].durable
	}
	if durable > before {
		t.points = append(t.points, point{at, durable, t.highest})
		t.highest = 0
	}
}

// moved is when the last step was.
func (t *trace) moved() time.Time {
	if n := len(t.points); n > 0 {
		return t.points[n-1].at
	}
	return t.began
}

// result sums the trace up. What the first commit seen made durable lies before the
// window.
func (t *trace) result(start time.Time, events int) Run {
	first, last := t.points[0], t.points[len(t.points)-1]
	return Run{
		Events: events, Seconds: last.at.Sub(start).Seconds(),
		WindowSeconds: last.at.Sub(first.at).Seconds(), WindowEvents: last.durable - first.durable,
		Quarters: t.quarters(start, events),
	}
}

// quarters cuts the trace by events. A step belongs to the quarter it ends in.
func (t *trace) quarters(start time.Time, events int) []quarter {
	cut := make([]quarter, 4)
	from, done := start, 0
	i := 0
	for k := range cut {
		end := events * (k + 1) / 4
		begun, before := from, done
		for i < len(t.points) && done < end {
			p := t.points[i]
			from, done = p.at, p.durable
			cut[k].MaxMiB = max(cut[k].MaxMiB, p.resident)
			i++
		}
		cut[k].Rate = perSecond(float64(done-before), from.Sub(begun).Seconds())
	}
	return cut
}
