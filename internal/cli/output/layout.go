package output

import (
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

const (
	// id is the width of a UUID. Optional columns are left out to show texts up to this width, but
	// not to show longer texts.
	id = 36
	// least is the shortest width of a text that is cut.
	least = 8
	// belowBy is how far a text below its row is indented.
	belowBy = 4
)

// layout has the columns that a terminal shows, and their widths.
type layout struct {
	columns  []Column
	flexible string // the name of the column that gets the spare width
	widths   []int
	hidden   []bool
	text     int // index of the column that is folded; -1: none
	indent   int // indent of the folded lines
}

// fitted lays out columns for rows in a terminal of width limit. At first, each column is as wide
// as its cells, but a column without numbers is at most as wide as a UUID or its usual width. If a
// row is too wide, optional columns are left out, the last one first. Then texts are cut, the
// longest first. Numbers are never cut. The argument more says that rows will follow.
func fitted(columns []Column, flexible string, rows [][]string, limit int, more bool) *layout {
	l := &layout{columns: columns, flexible: flexible, widths: make([]int, len(columns)), hidden: make([]bool, len(columns))}
	l.text = slices.IndexFunc(columns, func(c Column) bool { return c.text })
	needs := make([]int, len(columns)) // the widths at which no cell is cut
	for i, c := range columns {
		needs[i] = shownWidth(c.Name)
		for _, row := range rows {
			if i < len(row) {
				needs[i] = max(needs[i], shownWidth(row[i]))
			}
		}
		switch l.widths[i] = needs[i]; {
		case c.text && more:
			l.widths[i] = c.Width
		case c.text:
			l.widths[i] = min(needs[i], c.Width)
		case !c.Right:
			l.widths[i] = min(needs[i], max(id, c.Width, shownWidth(c.Name)))
		}
	}
	if l.text >= 0 {
		l.hidden[l.text] = l.total() > limit
	}
	for i := len(columns) - 1; i >= 0 && l.total() > limit; i-- {
		l.hidden[i] = l.hidden[i] || columns[i].optional
	}
	l.shrink(limit)
	l.grow(limit, needs, more)
	if l.indent = belowBy; l.text >= 0 && !l.textBelow() {
		l.indent = l.total() - l.widths[l.text]
	}
	return l
}

// textBelow reports whether the text column is below the other columns.
func (l *layout) textBelow() bool { return l.text >= 0 && l.hidden[l.text] }

func (l *layout) total() int {
	sum := -len(between)
	for i, w := range l.widths {
		if !l.hidden[i] {
			sum += w + len(between)
		}
	}
	return sum
}

// shrink narrows the widest texts until a row fits or every text is short.
func (l *layout) shrink(limit int) {
	for most := limit; most >= least && l.total() > limit; most-- {
		for i, c := range l.columns {
			if !c.Right {
				l.widths[i] = min(l.widths[i], max(most, shownWidth(c.Name)))
			}
		}
	}
}

// grow distributes the spare width: first to columns with cut cells, then to columns that are
// narrower than usual. If rows will follow, the flexible column gets the rest.
func (l *layout) grow(limit int, needs []int, more bool) {
	widen := func(i, width int) {
		if !l.hidden[i] {
			l.widths[i] += max(0, min(width-l.widths[i], limit-l.total()))
		}
	}
	for i := range l.columns {
		widen(i, needs[i])
	}
	for i, c := range l.columns {
		widen(i, c.Width)
	}
	if i := slices.IndexFunc(l.columns, func(c Column) bool { return c.Name == l.flexible }); more && i >= 0 {
		widen(i, limit)
	}
}

// left returns the names of the columns that are not shown.
func (l *layout) left() string {
	var names []string
	for i, c := range l.columns {
		if l.hidden[i] && i != l.text {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, ", ")
}

// shownWidth returns the width of a text on a terminal. An ideograph has the width of two columns,
// and a combining mark has no width.
func shownWidth(text string) int { return displaywidth.String(text) }

// folded splits a text into lines between words. A word that is longer than a line is split too.
func folded(text string, limit int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && shownWidth(line)+1+shownWidth(word) <= limit {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for shownWidth(word) > limit {
			head := displaywidth.TruncateString(word, limit, "")
			lines, word = append(lines, head), word[len(head):]
		}
		line = word
	}
	return append(lines, line)
}

// padded fills a text with spaces to the width of a column.
func padded(text string, columns int, right bool) string {
	padding := strings.Repeat(" ", max(0, columns-shownWidth(text)))
	if right {
		return padding + text
	}
	return text + padding
}
