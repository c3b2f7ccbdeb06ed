package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"projector/internal/telemetry"
	"projector/projection/event"
)

// suggested are the words suggested for a command line; the last word of it is the one
// at the cursor. ":files" stands for names of files.
func suggested(t *testing.T, line ...string) []string {
	t.Helper()
	var out, errOut bytes.Buffer
	if status := execute(t.Context(), append([]string{completionRequest}, line...), &out, &errOut); status != exitOK || errOut.Len() > 0 {
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
		"commands below a command":        {"dlq ", "list show export replay discard"},
		"one of them":                     {"dlq re", "replay"},
		"flags":                           {"gaps --o", "--output="},
		"a flag without a value":          {"dlq replay --y", "--yes"},
		"a short flag is not offered":     {"gaps -", "--help --projection= --database-url= --database-password-file= --output="},
		"flags of the whole program":      {"dlq --h", "--help"},
		"behind flags":                    {"dlq list --since=24h --unt", "--until="},
		"behind a flag with its value":    {"dlq list --since 24h --unt", "--until="},
		"behind a flag without a value":   {"lag --watch --inter", "--interval="},
		"nothing else can follow":         {"migrate ", "--help --database-url= --database-password-file="},
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

// A variable that is wrong must not take the completion away.
func TestSuggestionsWithAWrongEnvironment(t *testing.T) {
	t.Setenv("FIRST_VERSION", "one")
	if got := suggested(t, "ga"); !slices.Equal(got, []string{"gaps"}) {
		t.Errorf("got %q", got)
	}
}

// flags are all flags of the program, each with the path of its command.
func flags(t *testing.T) map[string][]*kong.Flag {
	t.Helper()
	all := map[string][]*kong.Flag{}
	for _, leaf := range parserOf(t).Model.Leaves(false) {
		for _, group := range leaf.AllFlags(false) {
			all[leaf.Path()] = append(all[leaf.Path()], group...)
		}
	}
	return all
}

// What is suggested for a flag has to be what its help says and what it takes.
func TestChoicesAreThoseOfTheHelp(t *testing.T) {
	seen := map[string]bool{}
	for path, list := range flags(t) {
		for _, flag := range list {
			seen[flag.Name] = true
			if flag.Name == "projection" {
				continue // its help says what it is for
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
	for _, level := range choices["log-level"]() {
		for _, format := range choices["log-format"]() {
			if _, err := telemetry.NewLogger(&bytes.Buffer{}, false, level, format); err != nil {
				t.Error(err)
			}
		}
	}
	for _, unit := range choices["debezium-time-unit"]() {
		if _, err := event.ParseTimeUnit(unit); err != nil {
			t.Error(err)
		}
	}
}

// A flag whose value is a file has to say so in the way that completion looks at.
func TestFilesAreKnownAsFiles(t *testing.T) {
	for path, list := range flags(t) {
		for _, flag := range list {
			if typed := flag.Tag.Type == "path" || flag.Tag.Type == "existingfile"; typed && !isFile(flag.Value) {
				t.Errorf("%s: --%s has the placeholder %q, want FILE", path, flag.Name, flag.PlaceHolder)
			}
		}
	}
}
