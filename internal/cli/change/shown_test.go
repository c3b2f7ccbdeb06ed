package change

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"projector/internal/cli/flags"
)

// TestACommandLineCanBePasted shows that bash and zsh read the original words from the printed
// command and run nothing else. The command has only characters that a terminal can display.
func TestACommandLineCanBePasted(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "projector"), []byte("#!/bin/sh\nfor word; do printf '%s\\0' \"$word\"; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	arguments := []string{
		"--from-file=a b;c.jsonl", "account", "skip", "--reason=ok;id>pwned", "--reason=it's \"quoted\" `id` $(id) $HOME \\ !x", "--reason=two\nlines\ttab", "--reason=\x1b[2J\x1b]0;owned\a",
		"--reason=\u009b2J \u202edesrever", "--reason=bad \xff\xfe utf8\x7f1", "--reason=", "--reason=~ * ? {a,b} [x] #no & | < >", "--reason=é ß 漢字", "--reason=\\'\n", "--", "", "acc 1", "=ls", "-x",
	}
	line := commandLine(append([]string{"projector"}, arguments...))
	if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u202e' || r == '\ufffd' }) {
		t.Errorf("a terminal would not show %q", line)
	}
	for _, shell := range []string{"bash", "zsh"} {
		path, err := exec.LookPath(shell)
		if err != nil {
			if shell == "bash" {
				t.Fatal(err)
			}
			continue
		}
		run := exec.CommandContext(t.Context(), path, "-c", line)
		run.Dir, run.Env = folder, append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
		out, err := run.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s\n%s", shell, err, line, out)
		}
		want := strings.Join(arguments, "\x00") + "\x00"
		if string(out) != want {
			t.Errorf("%s ran\n%q\nwant\n%q", shell, out, want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(left) != 1 {
		t.Errorf("the shell left %v (%v)", left, err)
	}
	if plain := flags.ShellWord("--reason=INC-1,a_b@c%d+e=f:g./h"); plain != "--reason=INC-1,a_b@c%d+e=f:g./h" {
		t.Errorf("quoted without need: %s", plain)
	}
}
