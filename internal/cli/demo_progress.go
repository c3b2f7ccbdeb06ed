package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

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

func newProgressBar(w io.Writer) *progressBar { return &progressBar{w: w, bar: movesCursor(w)} }

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
