package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// isTerminal reports whether somebody looks at w.
func isTerminal(w io.Writer) bool {
	file, isFile := w.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}

// movesCursor reports whether w is a terminal on which a line can be written over.
func movesCursor(w io.Writer) bool { return isTerminal(w) && os.Getenv("TERM") != "dumb" }

// terminalWidth is how wide a terminal is, if w is one; 0 when it does not say.
func terminalWidth(w io.Writer) (int, bool) {
	file, isFile := w.(*os.File)
	if !isFile || !isTerminal(w) {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, true
	}
	return width, true
}

// The colours, as the terminal's own numbers.
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
)

// painted is text in a colour, or as it is where there are to be none.
func painted(colours bool, colour, text string) string {
	if !colours {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
