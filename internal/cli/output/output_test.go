package output

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"projector/internal/devstack/devtest"
)

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
			tty := devtest.Terminal(t)
			if got := NewTable(tty, "").colours; got != tt.colours {
				t.Errorf("a table has colours: %v", got)
			}
			if got := NewProgress(tty, "").terminal; got != tt.moves {
				t.Errorf("progress is written over: %v", got)
			}
		})
	}
}

func TestNoColoursInAFile(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "")
	var out bytes.Buffer
	if NewTable(&out, "").colours || NewProgress(&out, "").terminal {
		t.Error("a file is taken for a terminal")
	}
}

func TestOnlyTheHeaderOfATableStandsOut(t *testing.T) {
	for colours, want := range map[bool]string{
		false: "A    B\na    b\n",
		true:  "\x1b[1mA    B\x1b[0m\na    b\n",
	} {
		var out strings.Builder
		table := NewTable(&out, "", Column{Name: "A", Width: 3}, Column{Name: "B"})
		table.colours = colours
		table.Header()
		table.Row("a", "b")
		if err := table.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestATableFitsAndMovesNoCursor(t *testing.T) {
	var out strings.Builder
	table := NewTable(&out, "B", Column{Name: "A", Width: 5}, Column{Name: "B", Width: 5, Right: true}, Column{Name: "C"})
	table.limit = 20
	table.Row("a\x1b[2J\n", "7", "a text that is much too long for it")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "a\uFFFD[2…      7  a tex…\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTimesBeyondTheYear9999AreWritten(t *testing.T) {
	for want, at := range map[string]time.Time{
		"10000-01-01T00:00:00Z": time.UnixMicro(253402300800_000000), "-0001-12-31T23:00:00Z": time.Date(-1, 12, 31, 23, 0, 0, 0, time.UTC),
	} {
		if got := TimeText(at); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
