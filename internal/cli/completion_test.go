package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"projector/internal/cli/exit"
	"projector/internal/telemetry"
	"projector/projection/event"
)

// The function suggested returns the suggestions for a command line whose cursor is at the last
// word. The text ":files" means that file names are completed.
func suggested(t *testing.T, line ...string) []string {
	t.Helper()
	var out, errOut bytes.Buffer
	if status := execute(t.Context(), append([]string{completionRequest}, line...), &out, &errOut); status != exit.OK || errOut.Len() > 0 {
		t.Fatalf("%q: exit status %d, %s", line, status, errOut.String())
	}
	var words []string
	for text := range strings.Lines(out.String()) {
		word, _, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "\t")
		words = append(words, word)
	}
	return words
}

func TestSuggestions(t *testing.T) {
	tests := map[string]struct{ line, want string }{
		"commands":                        {"v", "verify version"},
		"no hidden word":                  {"_", ""},
		"commands below a command":        {"dlq ", "list summary show export replay discard"},
		"one of them":                     {"dlq re", "replay"},
		"flags":                           {"gaps --o", "--output="},
		"a flag without a value":          {"dlq replay --y", "--yes"},
		"a short flag is not offered":     {"gaps -", "--help --projection= --projection-file= --database-url= --database-password-file= --output="},
		"flags of the whole program":      {"dlq --h", "--help"},
		"behind flags":                    {"dlq list --since=24h --unt", "--until="},
		"behind a flag with its value":    {"dlq list --since 24h --unt", "--until="},
		"behind a flag without a value":   {"lag --watch --inter", "--interval="},
		"nothing else can follow":         {"migrate up ", "--help --citus --citus-move --four-eyes= --actor= --database-url= --database-password-file="},
		"values kong checks":              {"lag --output=", "--output=text --output=json"},
		"values the program checks":       {"run --format=c", "--format=cloudevents"},
		"values as a word of their own":   {"run --format c", "cloudevents"},
		"projections":                     {"run --projection=", "--projection=account_balance --projection=account_statement --projection=daily_turnover"},
		"projections that have gaps":      {"gaps --projection=", "--projection=account_balance"},
		"a list":                          {"dlq list --status=re", "--status=ready --status=resolved"},
		"a list that goes on":             {"dlq list --status=open,re", "--status=open,ready --status=open,resolved"},
		"a list as a word":                {"dlq list --status open,wa", "open,waiting"},
		"no list":                         {"run --format=json,c", ""},
		"a file":                          {"run --tls-ca=/etc", ":files"},
		"a file as a word":                {"verify --ledger l", ":files"},
		"any value":                       {"run --topic=", ""},
		"any value as a word":             {"run --topic ", ""},
		"an argument that is anything":    {"account show ", ""},
		"a flag behind it":                {"account show acc-1 --outp", "--output="},
		"an argument of a few":            {"completion ", "bash zsh fish"},
		"an argument that was given":      {"completion bash z", ""},
		"an unknown command":              {"delete everything ", ""},
		"an unknown flag":                 {"gaps --every=", ""},
		"a flag of another command":       {"gaps --class=", ""},
		"behind two dashes nothing known": {"gaps -- --o", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(suggested(t, strings.Split(tt.line, " ")...), " "); got != tt.want {
				t.Errorf("projector %s: %q, want %q", tt.line, got, tt.want)
			}
		})
	}
	if got := suggested(t); got != nil {
		t.Errorf("of no word: %q", got)
	}
}

// A variable with a wrong value must not disable the completion.
func TestSuggestionsWithAWrongEnvironment(t *testing.T) {
	t.Setenv("FIRST_VERSION", "one")
	if got := suggested(t, "ga"); !slices.Equal(got, []string{"gaps"}) {
		t.Errorf("got %q", got)
	}
}

// flagsByPath returns all flags of the program, each with the path of its command.
func flagsByPath(t *testing.T) map[string][]*kong.Flag {
	t.Helper()
	all := map[string][]*kong.Flag{}
	for _, leaf := range parserOf(t).Model.Leaves(false) {
		for _, group := range leaf.AllFlags(false) {
			all[leaf.Path()] = append(all[leaf.Path()], group...)
		}
	}
	return all
}

// The help of a flag must name each suggested value. The suggested values for the log and the time
// unit must also be accepted.
func TestChoicesAreThoseOfTheHelp(t *testing.T) {
	seen := map[string]bool{}
	for path, list := range flagsByPath(t) {
		for _, flag := range list {
			seen[flag.Name] = true
			if flag.Name == "projection" {
				continue // its help describes the purpose instead of the values
			}
			for _, choice := range choicesOf(flag.Value) {
				if flag.Name != "class" && !strings.Contains(flag.Help, choice) {
					t.Errorf("%s: the help of --%s does not name %s", path, flag.Name, choice)
				}
			}
		}
	}
	for name := range choices {
		if !seen[name] {
			t.Errorf("there are choices for --%s, which no command has", name)
		}
	}
	for _, level := range choices["log-level"] {
		for _, format := range choices["log-format"] {
			if _, err := telemetry.NewLogger(&bytes.Buffer{}, false, level, format); err != nil {
				t.Error(err)
			}
		}
	}
	for _, unit := range choices["debezium-time-unit"] {
		if _, err := event.ParseTimeUnit(unit); err != nil {
			t.Error(err)
		}
	}
}

// A flag whose value is a file must have the placeholder FILE, by which the completion recognizes
// such flags.
func TestFilesAreKnownAsFiles(t *testing.T) {
	for path, list := range flagsByPath(t) {
		for _, flag := range list {
			if typed := flag.Tag.Type == "path" || flag.Tag.Type == "existingfile"; typed && !isFile(flag.Value) {
				t.Errorf("%s: --%s has the placeholder %q, want FILE", path, flag.Name, flag.PlaceHolder)
			}
		}
	}
}

// inBash runs a script in a bash that has loaded the completion. In this bash, the command
// projector is this test binary.
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

// TestCompletionInBash simulates the Tab key. It passes the position of the cursor, and the words
// as bash splits them, also at "=" and ":".
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
		{`press projector dlq ""`, "list|summary|show|export|replay|discard"},
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
	if status := execute(t.Context(), []string{"completion", "csh"}, out, errOut); status != exit.Usage || out.Len() > 0 ||
		!strings.Contains(errOut.String(), "bash") {
		t.Errorf("exit status %d, %q, %q", status, out, errOut)
	}
}

func TestEachShellHasAScript(t *testing.T) {
	for shell, says := range map[string]string{
		"bash": "complete -F _projector projector", "zsh": "#compdef projector", "fish": "complete -c projector",
	} {
		out, errOut := new(strings.Builder), new(strings.Builder)
		if status := execute(t.Context(), []string{"completion", shell}, out, errOut); status != exit.OK ||
			!strings.Contains(out.String(), says) || !strings.Contains(out.String(), completionRequest) {
			t.Errorf("%s: exit status %d, %s\n%s", shell, status, errOut, out)
		}
	}
}
