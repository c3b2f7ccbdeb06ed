package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// inBash runs a script in a bash that has sourced the completion and in which the
// command projector is this program.
func inBash(t *testing.T, script string) string {
	t.Helper()
	folder := t.TempDir()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(folder, "projector")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "ledger of may.csv"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-c",
		"set -u\nsource <(projector completion bash) || exit\n"+script)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), asProgram+"=1", "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestCompletionInBash presses Tab the way readline does: the words as bash takes them
// apart, at "=" and ":" too, and the place of the cursor among them.
func TestCompletionInBash(t *testing.T) {
	const press = `
press() {
  COMP_WORDS=("$@")
  COMP_CWORD=$((COMP_AT < 0 ? $# - 1 : COMP_AT))
  _projector
  printf '%s|' "${COMPREPLY[@]+"${COMPREPLY[@]}"}"
  echo
}
COMP_AT=-1
`
	tests := []struct{ line, want string }{
		{`press projector v`, "verify|version"},
		{`press projector dlq ""`, "list|show|export|replay|discard"},
		{`press projector dlq list --sta`, "--status="},
		{`press projector dlq list --status =`, "open|ready|waiting|resolved|discarded"},
		{`press projector dlq list --status = re`, "ready|resolved"},
		{`press projector dlq list --status = open,re`, "open,ready|open,resolved"},
		{`press projector dlq list --status re`, "ready|resolved"},
		{`press projector run --brokers = localhost : 9092 --format = av`, "avro"},
		{`press projector run --brokers localhost : 9092 --format = av`, "avro"},
		{`press projector lag --output = json --wa`, "--watch"},
		{`press projector verify --ledger = led`, "ledger of may.csv"},
		{`press projector verify --ledger led`, "ledger of may.csv"},
		{`press projector account show ""`, ""},
		{`press ./projector ga`, "gaps"},
		{`COMP_AT=1; press projector ga --output = json; COMP_AT=-1`, "gaps"},
		{`COMP_WORDBREAKS=${COMP_WORDBREAKS//=}; press projector lag --output=j`, "--output=json"},
	}
	script := press
	for _, tt := range tests {
		script += tt.line + "\n"
	}
	lines := strings.Split(strings.TrimSuffix(inBash(t, script), "\n"), "\n")
	if len(lines) != len(tests) {
		t.Fatalf("%d answers to %d questions: %q", len(lines), len(tests), lines)
	}
	for i, tt := range tests {
		if got := strings.TrimSuffix(lines[i], "|"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.line, got, tt.want)
		}
	}
}

func TestBashKnowsTheCompletion(t *testing.T) {
	if got := inBash(t, "complete -p projector"); got != "complete -F _projector projector\n" {
		t.Errorf("got %q", got)
	}
}

func TestCompletionOfAnUnknownShell(t *testing.T) {
	out, errOut := new(strings.Builder), new(strings.Builder)
	if status := execute(t.Context(), []string{"completion", "csh"}, out, errOut); status != exitUsage || out.Len() > 0 ||
		!strings.Contains(errOut.String(), "bash") {
		t.Errorf("exit status %d, %q, %q", status, out, errOut)
	}
}

func TestEachShellHasAScript(t *testing.T) {
	for shell, says := range map[string]string{
		"bash": "complete -F _projector projector", "zsh": "#compdef projector", "fish": "complete -c projector",
	} {
		out, errOut := new(strings.Builder), new(strings.Builder)
		if status := execute(t.Context(), []string{"completion", shell}, out, errOut); status != exitOK ||
			!strings.Contains(out.String(), says) || !strings.Contains(out.String(), completionRequest) {
			t.Errorf("%s: exit status %d, %s\n%s", shell, status, errOut, out)
		}
	}
}
