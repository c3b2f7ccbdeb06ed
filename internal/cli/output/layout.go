package output

import (
	"slices"
	"strings"
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
	needs := make([]int, len(columns)) // the widths at which no cell is cut
	for i, c := range columns {
		needs[i] = shownWidth(c.Name)
		for _, row := range rows {
			if i < len(row) {
				needs[i] = max(needs[i], shownWidth(row[i]))
			}
		}
		if l.widths[i] = needs[i]; !c.Right {
			l.widths[i] = min(needs[i], max(id, c.Width, shownWidth(c.Name)))
		}
	}
	l.placeText(needs, limit, more)
	for i := len(columns) - 1; i >= 0 && l.total() > limit; i-- {
		l.hidden[i] = columns[i].optional
	}
	l.shrink(limit)
	l.grow(limit, needs, more)
	if l.text >= 0 && !l.textBelow() {
		l.indent = l.total() - l.widths[l.text]
	}
	return l
}

// placeText decides whether the text column is next to the other columns or below them.
func (l *layout) placeText(needs []int, limit int, more bool) {
	l.text = slices.IndexFunc(l.columns, func(c Column) bool { return c.text })
	if l.text < 0 {
		return
	}
	l.widths[l.text] = l.columns[l.text].Width
	if !more {
		l.widths[l.text] = min(l.widths[l.text], needs[l.text])
	}
	if l.total() > limit {
		l.hidden[l.text], l.indent = true, belowBy
	}
}

// textBelow reports whether the text column is below the other columns.
func (l *layout) textBelow() bool { return l.text >= 0 && l.hidden[l.text] }

// total returns the width of a row.
func (l *layout) total() int {
	sum := -len(between)
	for i, w := range l.widths {
		if !l.hidden[i] {
			sum += w + len(between)
		}
	}
	return sum
}

// shrink narrows the widest text repeatedly, until a row fits or every text is short.
func (l *layout) shrink(limit int) {
	for l.total() > limit {
		widest := -1
		for i, c := range l.columns {
			floor := max(least, shownWidth(c.Name))
			if !l.hidden[i] && !c.Right && l.widths[i] > floor && (widest < 0 || l.widths[i] > l.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		l.widths[widest]--
	}
}

// grow distributes the spare width: first to columns with cut cells, then to columns that are
// narrower than usual. If rows will follow, the flexible column gets the rest.
func (l *layout) grow(limit int, needs []int, more bool) {
	for _, wanted := range [][]int{needs, l.usual()} {
		for i := range l.columns {
			if spare := limit - l.total(); !l.hidden[i] && spare > 0 {
				l.widths[i] = max(l.widths[i], min(wanted[i], l.widths[i]+spare))
			}
		}
	}
	i := slices.IndexFunc(l.columns, func(c Column) bool { return c.Name == l.flexible })
	if spare := limit - l.total(); more && i >= 0 && spare > 0 {
		l.widths[i] += spare
	}
}

func (l *layout) usual() []int {
	widths := make([]int, len(l.columns))
	for i, c := range l.columns {
		widths[i] = c.Width
	}
	return widths
}

// The method left returns the names of the columns that are not shown.
func (l *layout) left() string {
	var names []string
	for i, c := range l.columns {
		if l.hidden[i] && i != l.text {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, ", ")
}
