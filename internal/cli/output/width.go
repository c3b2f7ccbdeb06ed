package output

import (
	"strings"

	"github.com/clipperhouse/displaywidth"
)

// cut ends what was cut off.
const cut = "…"

// shownWidth is how many columns of a terminal a text has: ideographs and their like have
// two, a mark on the character before it none.
func shownWidth(text string) int { return displaywidth.String(text) }

// clipped is as much of a text as fits.
func clipped(text string, limit int) string { return displaywidth.TruncateString(text, limit, cut) }

// folded is a text in lines that fit, broken between words, and within a word that is longer
// than a line.
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

// padded is a text in a column.
func padded(text string, columns int, right bool) string {
	padding := strings.Repeat(" ", max(0, columns-shownWidth(text)))
	if right {
		return padding + text
	}
	return text + padding
}
