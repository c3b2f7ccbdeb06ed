package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"projector/internal/cli"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
)

// TestNothingHostileReachesTheTerminal puts control characters into a file, a flag and a name. None
// of them is printed.
func TestNothingHostileReachesTheTerminal(t *testing.T) {
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const attack = "Money\x1b]0;owned\a\x1b[2K\u009b1A\u202e"
	for name, args := range map[string][]string{
		"a mapping's key":   {"inspect", "--mapping=" + file("names.yaml", "eventTypes:\n  \"Money\\e]0;owned\\a\\e[2K\": X\n")},
		"a file's name":     {"inspect", "--mapping=" + filepath.Join(folder, attack)},
		"a flag's value":    {"lag", "--output=" + attack},
		"an argument":       {"dlq", "show", attack},
		"a command":         {attack},
		"a projection file": {"run", "--projection-file=" + file("points.sql", "-- projection: "+attack+"\n")},
		"a database's port": {"gaps", "--database-url=postgres://localhost:" + attack},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			if status := cli.Main(t.Context(), args, &out, &errOut, flags.BuildInfo{}); status == 0 || errOut.Len() == 0 {
				t.Errorf("exit status %d, %q", status, errOut.String())
			}
			if i := strings.IndexFunc(out.String()+errOut.String(), output.IsHostile); i >= 0 {
				t.Errorf("printed %q", out.String()+errOut.String())
			}
		})
	}
}
