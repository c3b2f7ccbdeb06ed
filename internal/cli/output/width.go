package output

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// cut ends what was cut off.
const cut = "…"

// shownWidth is how many columns of a terminal a text takes: ideographs and their like take
// two, a mark on the letter before it takes none.
func shownWidth(text string) int {
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	if r < unicode.MaxLatin1 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	case width.Neutral, width.EastAsianAmbiguous, width.EastAsianNarrow, width.EastAsianHalfwidth:
	}
	return 1
}

// clipped is as much of a text as fits.
func clipped(text string, limit int) string {
	if shownWidth(text) <= limit {
		return text
	}
	return beginning(text, limit-shownWidth(cut)) + cut
}

// beginning is as much of the beginning of a text as fits.
func beginning(text string, limit int) string {
	for i, r := range text {
		if limit -= runeWidth(r); limit < 0 {
			return text[:i]
		}
	}
	return text
}

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
			head := beginning(word, limit)
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
