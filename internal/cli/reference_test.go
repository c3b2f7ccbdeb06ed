package cli

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write docs/cli.md instead of comparing it")

// TestReferenceIsCurrent shows that docs/cli.md matches the commands from which it is generated.
func TestReferenceIsCurrent(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "cli.md")
	want := newReference(t).page()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/cli.md is not what the commands say: run make docs-cli")
	}
}

// TestReferenceIsWhole checks with separate code that docs/cli.md has a row for each flag.
func TestReferenceIsWhole(t *testing.T) {
	page := newReference(t).page()
	for path, list := range flagsByPath(t) {
		for _, f := range list {
			if f.Name == "help" {
				continue
			}
			row := regexp.MustCompile("(?m)^\\| `--" + f.Name + "(=[^`]*)?` \\| " + variablesOf(f) + " \\|.*$").FindString(page)
			if row == "" {
				t.Errorf("%s: no row for --%s (%s)", path, f.Name, variablesOf(f))
			}
		}
	}
}

// reference generates docs/cli.md. A row that is the same for several commands is printed only one
// time, in the section of its group after the commands.
type reference struct {
	app    *kong.Application
	manual map[string]manualPage
	shared []flagTable
	text   strings.Builder
}

// flagTable is a group of flags of a command.
type flagTable struct {
	title string
	rows  []string
}

func newReference(t *testing.T) *reference {
	t.Helper()
	app := parserOf(t).Model
	r := &reference{app: app, manual: readManual(t)}
	uses := map[string]int{}
	for _, leaf := range app.Leaves(true) {
		for _, table := range tablesOf(leaf) {
			for _, row := range table.rows {
				uses[row]++
			}
		}
	}
	for _, leaf := range app.Leaves(true) {
		for _, table := range tablesOf(leaf) {
			for _, row := range table.rows {
				if uses[row] > 1 {
					r.share(table.title, row)
				}
			}
		}
	}
	return r
}

func (r *reference) share(title, row string) {
	i := slices.IndexFunc(r.shared, func(t flagTable) bool { return t.title == title })
	if i < 0 {
		i = len(r.shared)
		r.shared = append(r.shared, flagTable{title: title})
	}
	if !slices.Contains(r.shared[i].rows, row) {
		r.shared[i].rows = append(r.shared[i].rows, row)
	}
}

// sharedOf returns the anchor of a group's section and the rows in this section.
func (r *reference) sharedOf(title string) (anchor string, rows []string) {
	i := slices.IndexFunc(r.shared, func(t flagTable) bool { return t.title == title })
	if i < 0 {
		return "", nil
	}
	return strings.ToLower(strings.ReplaceAll(cmp.Or(title, "Common"), " ", "-")) + "-flags", r.shared[i].rows
}

func (r *reference) page() string {
	r.write(`<!-- Made from the commands by make docs-cli; a test keeps the two the same. -->
# Command line

%s

An empty environment variable counts as not set. Colours are for terminals only; `+"`NO_COLOR`"+` and `+"`TERM=dumb`"+` turn them off. Results go to standard output, logs and progress to standard error. `+"`projector COMMAND --help`"+` prints the same about one command.

| command | does |
|---|---|
`, r.app.Help)
	for _, leaf := range r.app.Leaves(true) {
		r.write("| [`projector %s`](#projector-%s) | %s |\n", leaf.Path(), strings.ReplaceAll(leaf.Path(), " ", "-"), leaf.Help)
	}
	for _, leaf := range r.app.Leaves(true) {
		r.command(leaf)
	}
	r.write("\n## Shared flags\n")
	for _, table := range r.shared {
		r.write("\n### %s flags\n\n%s%s", cmp.Or(table.title, "Common"), tableHead, strings.Join(table.rows, ""))
	}
	return r.text.String()
}

func (r *reference) write(format string, args ...any) { fmt.Fprintf(&r.text, format, args...) }

func (r *reference) command(leaf *kong.Node) {
	page := r.manual[leaf.Path()]
	r.write("\n## projector %s\n\n%s\n\n```\nprojector %s\n```\n\n%s\n", leaf.Path(), leaf.Help, leaf.Summary(), page.about)
	if page.status != "" {
		r.write("\nExit status: %s\n", page.status)
	}
	for _, arg := range leaf.Positional {
		r.write("\n`%s`: %s\n", arg.Summary(), arg.Help)
	}
	var links []string
	for _, table := range tablesOf(leaf) {
		anchor, shared := r.sharedOf(table.title)
		var own, others []string
		for _, row := range table.rows {
			if slices.Contains(shared, row) {
				others = append(others, "`"+strings.FieldsFunc(row, func(c rune) bool { return strings.ContainsRune("|`= ", c) })[0]+"`")
			} else {
				own = append(own, row)
			}
		}
		if len(own) > 0 {
			if table.title != "" {
				r.write("\n%s:\n", table.title)
			}
			r.write("\n%s%s", tableHead, strings.Join(own, ""))
		}
		switch {
		case len(others) == 0:
		case len(others) == len(shared):
			links = append(links, fmt.Sprintf("[%s](#%s)", cmp.Or(table.title, "Common"), anchor))
		default:
			links = append(links, fmt.Sprintf("%s ([%s](#%s))", strings.Join(others, ", "), cmp.Or(table.title, "Common"), anchor))
		}
	}
	if len(links) > 0 {
		r.write("\nShared flags: %s.\n", strings.Join(links, ", "))
	}
	r.write("\n```\n")
	for i, e := range page.examples {
		if i > 0 {
			r.write("\n")
		}
		r.write("# %s\n%s\n", e.purpose, e.line)
	}
	r.write("```\n")
}

const tableHead = "| flag | variable | default | |\n|---|---|---|---|\n"

// tablesOf returns the groups of a command's flags, in the order of --help.
func tablesOf(leaf *kong.Node) []flagTable {
	var tables []flagTable
	for _, level := range leaf.AllFlags(true) {
		for _, f := range level {
			if f.Name == "help" {
				continue
			}
			title := ""
			if f.Group != nil {
				title = f.Group.Title
			}
			i := slices.IndexFunc(tables, func(t flagTable) bool { return t.title == title })
			if i < 0 {
				i = len(tables)
				tables = append(tables, flagTable{title: title})
			}
			tables[i].rows = append(tables[i].rows, row(f))
		}
	}
	slices.SortStableFunc(tables, func(a, b flagTable) int { // the command's own flags come first
		return cmp.Compare(min(1, len(a.title)), min(1, len(b.title)))
	})
	return tables
}

// ofDefault matches the default value at the end of a flag's help.
var ofDefault = regexp.MustCompile(` \(default [^()]*\)`)

func row(f *kong.Flag) string {
	written := "--" + f.Name
	if !f.IsBool() {
		placeholder := f.PlaceHolder
		if placeholder == "" {
			placeholder = strings.ToUpper(f.Name)
		}
		written += "=" + placeholder
	}
	standard := ""
	switch {
	case f.Required:
		standard = "required"
	case f.HasDefault:
		standard = "`" + f.Default + "`"
	}
	help := f.Help
	if f.HasDefault {
		help = ofDefault.ReplaceAllString(help, "")
	}
	if values := choicesOf(f.Value); len(values) > 1 && !strings.Contains(help, values[0]) {
		help += " One of " + strings.Join(values, ", ") + "."
	}
	cells := []string{"`" + written + "`", variablesOf(f), standard, strings.ReplaceAll(help, "|", "\\|")}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// variablesOf returns the environment variables of a flag.
func variablesOf(f *kong.Flag) string {
	if len(f.Envs) == 0 {
		return "typed only"
	}
	return "`" + strings.Join(f.Envs, "`, `") + "`"
}
