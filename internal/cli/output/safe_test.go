package output

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"projector/internal/devstack/devtest"
)

func TestSafeEscapes(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext, Zoë, 口座\n":        "plain\ttext, Zoë, 口座\n",
		"\x1b]0;owned\a":                `\u001b]0;owned\u0007`,
		"a\rb\x7f":                      `a\u000db\u007f`,
		"\u009b2J and \u202etxt.exe":    `\u009b2J and \u202etxt.exe`,
		"\u2066left\u2069 \u200f\u061c": `\u2066left\u2069 \u200f\u061c`,
		"broken \xff\x9b":               "broken \ufffd\ufffd",
		"ends within a rune \xe5\x8f":   "ends within a rune \ufffd",
	} {
		var out bytes.Buffer
		safe := NewSafe(&out)
		if n, err := safe.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
		if err := safe.Close(); err != nil || out.String() != want {
			t.Errorf("%q: printed %q, want %q, %v", text, out.String(), want, err)
		}
	}
}

// TestSafeKeepsDocuments shows that no hostile character is printed and that a JSON document keeps
// its meaning, for any text and any division into writes.
func TestSafeKeepsDocuments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune("a\x1b\u009b\u202e\u2028\n\t口")))).Draw(t, "text")
		document, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		safe := NewSafe(&out)
		for len(document) > 0 {
			n := rapid.IntRange(1, len(document)).Draw(t, "written")
			if _, err := safe.Write(document[:n]); err != nil {
				t.Fatal(err)
			}
			document = document[n:]
		}
		var got string
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || got != text {
			t.Fatalf("%q became %q: %v", text, got, err)
		}
		for _, r := range out.String() {
			if IsHostile(r) || r == utf8.RuneError && !bytes.ContainsRune([]byte(text), utf8.RuneError) {
				t.Fatalf("%U was printed", r)
			}
		}
	})
}

// TestControlPassesSafe shows that a terminal below a Safe is recognized, and that the program's
// own control sequences reach the terminal.
func TestControlPassesSafe(t *testing.T) {
	t.Setenv("TERM", "xterm-256color")
	if tty := devtest.Terminal(t); !IsTerminal(NewSafe(tty)) {
		t.Error("a terminal is not recognized below a Safe")
	}
	var out bytes.Buffer
	Control(NewSafe(&out), "\r\x1b[K")
	if out.String() != "\r\x1b[K" {
		t.Errorf("printed %q", out.String())
	}
}
