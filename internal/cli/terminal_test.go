package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// terminal is one side of a pseudo-terminal: enough to be taken for a terminal.
func terminal(t *testing.T) *os.File {
	t.Helper()
	file, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func TestWhatATerminalMayShow(t *testing.T) {
	tests := map[string]struct {
		term, noColor  string
		colours, moves bool
	}{
		"a terminal":             {"xterm-256color", "", true, true},
		"one without colours":    {"xterm-256color", "1", false, true},
		"one that is dumb":       {"dumb", "", false, false},
		"one of an unknown kind": {"", "", true, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TERM", tt.term)
			t.Setenv("NO_COLOR", tt.noColor)
			tty := terminal(t)
			if got := newTable(tty, "").colours; got != tt.colours {
				t.Errorf("a table has colours: %v", got)
			}
			if got := newPage(tty, func() {}).colours; got != tt.colours {
				t.Errorf("the demo's page has colours: %v", got)
			}
			if got := newProgress(tty, "").terminal; got != tt.moves {
				t.Errorf("progress is written over: %v", got)
			}
			if got := newProgressBar(tty).bar; got != tt.moves {
				t.Errorf("a bar is drawn: %v", got)
			}
		})
	}
}

func TestNoColoursInAFile(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "")
	var out bytes.Buffer
	if newTable(&out, "").colours || newPage(&out, func() {}).colours || newProgressBar(&out).bar || newProgress(&out, "").terminal {
		t.Error("a file is taken for a terminal")
	}
}

func TestOnlyTheHeaderOfATableStandsOut(t *testing.T) {
	for colours, want := range map[bool]string{
		false: "A    B\na    b\n",
		true:  "\x1b[1mA    B\x1b[0m\na    b\n",
	} {
		var out strings.Builder
		table := newTable(&out, "", column{name: "A", width: 3}, column{name: "B"})
		table.colours = colours
		table.header()
		table.row("a", "b")
		if err := table.flush(); err != nil {
			t.Fatal(err)
		}
		equal(t, out.String(), want)
	}
}
