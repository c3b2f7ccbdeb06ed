package main

import (
	"fmt"
	"html"
	"strings"
)

const (
	columns    = 104
	rows       = 22
	lineHeight = 18
	charWidth  = 7.8
	seconds    = 4 // time of a screen
)

// draw returns an animation that shows each screen for some seconds and starts again after the last
// screen.
func draw(screens []screen) string {
	total := seconds * len(screens)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img" aria-label="The demo, and an account that is healed">
<style>
text { font: 13px ui-monospace, monospace; fill: #d0d7de; white-space: pre }
.typed { fill: #7ee787 } .good { fill: #7ee787 }
g { opacity: 0; animation: show %ds step-end infinite }
@keyframes show { 0%% { opacity: 1 } %.2f%% { opacity: 0 } }
</style>
<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>
`, columns*charWidth+24, rows*lineHeight+24, total, 100/float64(len(screens)))
	for i, s := range screens {
		fmt.Fprintf(&b, `<g style="animation-delay:%ds"><text class="typed" x="12" y="24">$ %s</text>`, seconds*i, html.EscapeString(s.command))
		for n, line := range s.lines {
			if n == rows-2 {
				break
			}
			class := ""
			if strings.HasPrefix(strings.TrimSpace(line), "ok ") {
				class = ` class="good"`
			}
			if cut := []rune(line); len(cut) > columns {
				line = string(cut[:columns-1]) + "…"
			}
			fmt.Fprintf(&b, `<text%s x="12" y="%d">%s</text>`, class, 24+lineHeight*(n+1), html.EscapeString(line))
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}
