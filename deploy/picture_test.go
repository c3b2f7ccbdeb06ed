//go:build deploy

package deploy_test

import (
	"flag"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var picture = flag.String("picture", "", "draw the dashboard of the night into this PNG, to look at (needs Chromium)")

// These are sizes in pixels. Grafana's grid has 24 columns, and each of its rows is 38 pixels high.
const (
	pictureWidth = 1800
	column       = pictureWidth / 24
	row          = 38
)

var palette = []string{"#7eb26d", "#eab839", "#6ed0e0", "#ef843c", "#e24d42", "#1f78c1", "#ba43a9", "#705da0"}

// draw places the panels as Grafana does and takes a picture with Chromium.
func draw(t *testing.T, panels []panel, drawn map[string][]line) {
	t.Helper()
	var b strings.Builder
	bottom := 0
	for _, p := range panels {
		x, y, w, h := p.GridPos.X*column, p.GridPos.Y*row, p.GridPos.W*column-8, p.GridPos.H*row-8
		bottom = max(bottom, y+h)
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`, x, y)
		if p.Type != "row" {
			fmt.Fprintf(&b, `<rect class="panel" width="%d" height="%d"/>`, w, h)
		}
		fmt.Fprintf(&b, `<text class="title" x="8" y="18">%s</text>`, html.EscapeString(p.Title))
		switch p.Type {
		case "stat":
			drawStat(&b, p, drawn[p.Title+p.Type], w, h)
		case "timeseries":
			drawLines(&b, p, drawn[p.Title+p.Type], w, h)
		}
		b.WriteString("</g>\n")
	}
	page := filepath.Join(t.TempDir(), "dashboard.html")
	write(t, page, fmt.Sprintf(`<!doctype html><meta charset="utf-8"><style>
body { margin: 0; background: #111217 } text { font: 12px sans-serif; fill: #ccccdc } .title { font-weight: bold } .stat { font-size: 34px }
.panel { fill: #181b1f; stroke: #2c3235 } .grid { stroke: #2c3235 } path { fill: none; stroke-width: 1.5 }
</style><svg width="%d" height="%d">%s</svg>`, pictureWidth, bottom, b.String()))
	flags := []string{
		"--headless", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--user-data-dir=" + t.TempDir(),
		fmt.Sprintf("--window-size=%d,%d", pictureWidth, bottom), "--screenshot=" + *picture, "file://" + page,
	}
	if os.Geteuid() == 0 {
		flags = append(flags, "--no-sandbox") // Chromium's sandbox does not work as root
	}
	if _, err := run(t.Context(), ".", "chromium", flags...); err != nil {
		t.Errorf("%v (Debian's package chromium has it)", err)
	}
}

// drawStat draws the value at 04:20, during the storm, in the colour of its threshold.
func drawStat(b *strings.Builder, p panel, lines []line, w, h int) {
	text, colour := "none", "#ccccdc"
	if len(lines) > 0 {
		value := lines[0].values[nightStart.Add(6*time.Hour+20*time.Minute).Unix()]
		text = inUnit(value, p.FieldConfig.Defaults.Unit)
		for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
			if step.Value == nil || value >= *step.Value {
				colour = step.Color
			}
		}
	}
	fmt.Fprintf(b, `<text class="stat" x="%d" y="%d" text-anchor="middle" style="fill:%s">%s</text>`, w/2, h/2+24, colour, text)
}

// drawLines draws the series over the whole time range. It draws no scale for an axis on the right,
// because the legend has the values of these lines.
func drawLines(b *strings.Builder, p panel, lines []line, w, h int) {
	const left, top, lineHeight = 62, 30, 15
	width, height := w-left-10, h-top-25-lineHeight*min(len(lines), 5)
	unit := p.FieldConfig.Defaults.Unit
	scaled := map[bool][]line{} // key: whether the axis is on the right
	for _, l := range lines {
		_, right := rightUnit(p, l)
		scaled[right] = append(scaled[right], l)
	}
	least, most := bounds(scaled[false])
	for i := range 3 {
		y := top + height*i/2
		fmt.Fprintf(b, `<path class="grid" d="M%d %dh%d"/><text x="%d" y="%d" text-anchor="end">%s</text>`,
			left, y, width, left-4, y+4, inUnit(most-(most-least)*float64(i)/2, unit))
	}
	for hour := 0; hour <= 8; hour += 2 {
		fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`,
			left+width*hour/8, top+height+14, nightStart.Add(time.Duration(hour)*time.Hour).Format("15:04"))
	}
	for i, l := range lines {
		colour, unit, least, most := palette[i%len(palette)], unit, least, most
		if other, right := rightUnit(p, l); right {
			unit = other
			least, most = bounds(scaled[true])
		}
		path, pen, last, highest := "", "M", math.NaN(), math.Inf(-1)
		for at := nightStart; !at.After(nightEnd); at = at.Add(nightStep) {
			value, exists := l.values[at.Unix()]
			if !exists || math.IsNaN(value) {
				pen = "M"
				continue
			}
			path += fmt.Sprintf("%s%.1f %.1f", pen, left+float64(width)*float64(at.Sub(nightStart))/float64(nightEnd.Sub(nightStart)),
				top+float64(height)*(most-value)/(most-least))
			pen, last, highest = "L", value, max(highest, value)
		}
		fmt.Fprintf(b, `<path stroke="%s" d="%s"/>`, colour, path)
		if i < 5 {
			y := top + height + 25 + lineHeight*(i+1) - 6
			fmt.Fprintf(b, `<text x="8" y="%d" style="fill:%s">%s</text><text x="%d" y="%d" text-anchor="end">last %s, max %s</text>`,
				y, colour, html.EscapeString(l.legend), w-8, y, inUnit(last, unit), inUnit(highest, unit))
		}
	}
}

// rightUnit returns the unit of a line whose axis is on the right. It returns false if the axis is
// on the left.
func rightUnit(p panel, l line) (string, bool) {
	unit, right := p.FieldConfig.Defaults.Unit, false
	for _, override := range p.FieldConfig.Overrides {
		if override.Matcher.Options != l.query {
			continue
		}
		for _, property := range override.Properties {
			switch property.ID {
			case "unit":
				unit = property.Value
			case "custom.axisPlacement":
				right = property.Value == "right"
			}
		}
	}
	return unit, right
}

// bounds returns the smallest and the largest of 0 and all values.
func bounds(lines []line) (least, most float64) {
	for _, l := range lines {
		for _, value := range l.values {
			if !math.IsNaN(value) {
				least, most = min(least, value), max(most, value)
			}
		}
	}
	if most == least {
		most = least + 1
	}
	return least, most
}

// inUnit formats a value with one of Grafana's units, in short form.
func inUnit(value float64, unit string) string {
	type scale struct {
		from float64
		name string
	}
	decimal := []scale{{1e9, "Bil"}, {1e6, "Mil"}, {1e3, "K"}, {1, ""}}
	scales, suffix := decimal, ""
	switch unit {
	case "s":
		scales = []scale{{86400, " d"}, {3600, " h"}, {60, " min"}, {1, " s"}, {1e-3, " ms"}}
	case "ns":
		scales = []scale{{1e9, " s"}, {1e6, " ms"}, {1e3, " µs"}, {1, " ns"}}
	case "bytes", "Bps":
		scales, suffix = []scale{{1 << 30, " GiB"}, {1 << 20, " MiB"}, {1 << 10, " KiB"}, {1, " B"}}, strings.TrimPrefix(unit, "bytes")
		suffix = strings.Replace(suffix, "Bps", "/s", 1)
	case "cps":
		suffix = " /s"
	}
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return "-"
	case value == 0:
		return "0" + suffix
	}
	i := slices.IndexFunc(scales, func(s scale) bool { return math.Abs(value) >= s.from })
	if i < 0 {
		i = len(scales) - 1
	}
	return fmt.Sprintf("%.3g%s%s", value/scales[i].from, scales[i].name, suffix)
}
