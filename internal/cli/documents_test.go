package cli

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"projector/internal/devstack/devtest"
	"projector/readmodel"
)

const documents = "../../docs"

// typed matches the commands in a document: a line of a code block, or a whole command in
// backquotes.
var typed = regexp.MustCompile("(?m)^projector .*$|`projector [^`]*`")

// placeholders replaces the placeholders in the commands of the documents with values.
var placeholders = strings.NewReplacer(" ID", " acc-42", "P/O", "3/1042", "FILE.csv", "ledger.csv", `"`, "'")

// TestCommandsOfTheDocumentsAreUnderstood shows that the program accepts every command in the
// documents. Commands with an ellipsis are left out.
func TestCommandsOfTheDocumentsAreUnderstood(t *testing.T) {
	found := map[string]string{}
	paths, err := filepath.Glob(documents + "/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(paths, "../../README.md") {
		if filepath.Base(path) == "cli.md" { // generated from the commands
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range typed.FindAllString(string(text), -1) {
			line, _, _ = strings.Cut(strings.Trim(line, "`"), " #")
			if !strings.Contains(line, "…") {
				found[placeholders.Replace(strings.TrimSpace(line))] = filepath.Base(path)
			}
		}
	}
	if len(found) < 25 {
		t.Fatalf("only %d commands in the documents", len(found))
	}
	t.Chdir(t.TempDir())
	for _, name := range []string{"poison.jsonl", "dead-letters.jsonl", "corrected.jsonl", "bank.yaml"} { // kong checks that these files exist
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for line, path := range found {
		args := argumentsOf(t, line)
		if _, err := parserOf(t, args...).Parse(args); err != nil {
			t.Errorf("%s: %s: %v", path, line, err)
		}
	}
}

var (
	// defaulted matches a flag with its default on a page, such as `--retry-max` (60 s).
	defaulted = regexp.MustCompile("`--([a-z-]+)` \\((?:default )?`?(:?[0-9][0-9,]*(?: [a-zA-Z]+)?)[`,)]")
	measure   = regexp.MustCompile(`^(\d+) ?([a-zA-Z]+)$`)
	units     = map[string]time.Duration{
		"MiB": 1 << 20, "s": time.Second, "m": time.Minute, "minute": time.Minute, "h": time.Hour, "days": 24 * time.Hour,
	}
)

// TestDefaultsOfTheDocumentsAreRight shows that each default that a page gives in brackets after a
// flag is the default of this flag in some command.
func TestDefaultsOfTheDocumentsAreRight(t *testing.T) {
	defaults := map[string][]string{} // by flag; some flags have another default in another command
	for _, list := range flagsByPath(t) {
		for _, f := range list {
			defaults[f.Name] = append(defaults[f.Name], plain(f.Default))
		}
	}
	checked := 0
	for _, path := range allPages(t) {
		for _, found := range defaulted.FindAllStringSubmatch(readPage(t, path), -1) {
			checked++
			if !slices.Contains(defaults[found[1]], plain(found[2])) {
				t.Errorf("%s: --%s is %s; the program has %v", path, found[1], found[2], defaults[found[1]])
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d defaults", checked)
	}
}

// The function plain converts a default to a number of nanoseconds or bytes. A default without a
// known unit stays unchanged.
func plain(value string) string {
	value = strings.ReplaceAll(value, ",", "")
	found := measure.FindStringSubmatch(value)
	if len(found) == 0 || units[found[2]] == 0 {
		return value
	}
	n, err := strconv.ParseInt(found[1], 10, 64)
	if err != nil {
		return value
	}
	return strconv.FormatInt(n*int64(units[found[2]]), 10)
}

// The function operating returns the text of the pages for operators.
func operating(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, name := range []string{"runbook.md", "repairs.md"} {
		text, err := os.ReadFile(filepath.Join(documents, name))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// TestRunbookChangesNothingBySQL shows that the pages for operators have no SQL that changes data,
// because operators change data by commands.
func TestRunbookChangesNothingBySQL(t *testing.T) {
	text := operating(t)
	for _, statement := range regexp.MustCompile(`(?m)\b(UPDATE|DELETE FROM|TRUNCATE|INSERT INTO|ALTER TABLE)\b.*$`).FindAllString(text, -1) {
		t.Errorf("the runbook has %s", statement)
	}
}

var (
	statements  = regexp.MustCompile("(?s)```sql\n(.*?)```")
	placeholder = regexp.MustCompile(`<[a-z ]+>`)
)

// TestStatementsOfTheRunbookRun runs the SQL blocks of the pages for operators on the current
// schema.
func TestStatementsOfTheRunbookRun(t *testing.T) {
	pool, err := readmodel.OpenPool(t.Context(), devtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	blocks := statements.FindAllStringSubmatch(operating(t), -1)
	if len(blocks) < 2 {
		t.Fatalf("only %d blocks of statements in the runbook", len(blocks))
	}
	for _, block := range blocks {
		if _, err := pool.Exec(t.Context(), placeholder.ReplaceAllString(block[1], "0")); err != nil {
			t.Errorf("%v\n%s", err, block[1])
		}
	}
}

var (
	code    = regexp.MustCompile("(?s)```.*?```")
	links   = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noWord  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinksOfTheDocumentsLeadSomewhere shows that every file and heading that a link names exists.
func TestLinksOfTheDocumentsLeadSomewhere(t *testing.T) {
	paths, checked := []string{"../../README.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md"}, 0
	for _, pattern := range []string{documents + "/*.md", documents + "/decisions/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		for _, link := range links.FindAllStringSubmatch(proseOf(t, path), -1) {
			target, place := link[1], strings.TrimPrefix(link[2], "#")
			if strings.Contains(target, "://") {
				continue
			}
			checked++
			to := path
			if target != "" {
				to = filepath.Join(filepath.Dir(path), target)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %s is not there", path, target)
			} else if place != "" && !slices.Contains(anchorsIn(t, to), place) {
				t.Errorf("%s: %s has no heading #%s", path, to, place)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d links", checked)
	}
}

// section matches the name of a heading in a message or a help text, and the page of the heading.
var section = regexp.MustCompile(`(the runbook|docs/([a-z-]+)\.md), \\?"([A-Za-z][^"\\]*)\\?"`)

// TestSectionsThatMessagesNameAreThere shows that messages and help texts name only headings that
// exist.
func TestSectionsThatMessagesNameAreThere(t *testing.T) {
	checked := 0
	eachFile(t, func(path string) {
		if ext := filepath.Ext(path); ext != ".go" && ext != ".txt" || strings.HasSuffix(path, "_test.go") {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, named := range section.FindAllStringSubmatch(string(text), -1) {
			checked++
			page := documents + "/" + cmp.Or(named[2], "runbook") + ".md"
			if !slices.Contains(anchorsIn(t, page), anchorOf(named[3])) {
				t.Errorf("%s: %s has no heading %q", path, page, named[3])
			}
		}
	})
	if checked < 15 {
		t.Errorf("only %d sections are named", checked)
	}
}

// TestEachDecisionHasAStatus shows that the index of decisions has a row with a status for each
// decision.
func TestEachDecisionHasAStatus(t *testing.T) {
	index := proseOf(t, documents+"/decisions/README.md")
	paths, err := filepath.Glob(documents + "/decisions/[0-9]*.md")
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d decisions: %v", len(paths), err)
	}
	for _, path := range paths {
		row := regexp.MustCompile(`(?m)^\| \d+ \| \[.+\]\(` + regexp.QuoteMeta(filepath.Base(path)) + `\) \|.*\| (accepted|superseded|record)[^|]* \|$`)
		if !row.MatchString(index) {
			t.Errorf("the index has no row with a status for %s", filepath.Base(path))
		}
	}
}

// proseOf returns a document without its code blocks.
func proseOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return code.ReplaceAllString(string(text), "")
}

// anchorsIn returns the anchors of a document's headings.
func anchorsIn(t *testing.T, path string) []string {
	t.Helper()
	var anchors []string
	for _, h := range heading.FindAllStringSubmatch(proseOf(t, path), -1) {
		anchors = append(anchors, anchorOf(h[1]))
	}
	return anchors
}

// anchorOf returns the anchor of a heading.
func anchorOf(heading string) string {
	return strings.ReplaceAll(noWord.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}
