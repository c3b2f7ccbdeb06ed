package output

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

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
