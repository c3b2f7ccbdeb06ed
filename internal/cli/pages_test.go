package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"projector/internal/devstack/devtest"
	"projector/projection/event"
	"projector/readmodel"
)

// forReaders are the tables and views whose columns are public.
var forReaders = []string{
	"account_balance_current", "account_statement", "account_statement_missing", "account_statement_balance",
	"account_skipped", "daily_turnover", "account_hold", "projection_hold",
}

// TestTheReadModelIsDocumented shows that docs/read-model.md names each table and view, and each
// column of those in forReaders.
func TestTheReadModelIsDocumented(t *testing.T) {
	page := pageOf(t, "read-model.md")
	public, _, _ := strings.Cut(page, "\n## Internal")
	pool, err := readmodel.OpenPool(t.Context(), devtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	rows, err := pool.Query(t.Context(), `SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = current_schema()`)
	if err != nil {
		t.Fatal(err)
	}
	relations := map[string]bool{}
	var relation, column string
	_, err = pgx.ForEachRow(rows, []any{&relation, &column}, func() error {
		relations[relation] = true
		if slices.Contains(forReaders, relation) && !strings.Contains(public, "`"+column+"`") {
			t.Errorf("read-model.md does not have %s of %s", column, relation)
		}
		return nil
	})
	if err != nil || len(relations) < len(forReaders) {
		t.Fatalf("%d relations: %v", len(relations), err)
	}
	for relation := range relations {
		if !strings.Contains(page, "`"+relation+"`") {
			t.Errorf("read-model.md does not have %s", relation)
		}
	}
	for _, relation := range forReaders {
		if !relations[relation] {
			t.Errorf("there is no %s", relation)
		}
	}
}

// TestTheEventsAreDocumented shows that docs/events.md names each event type and each class, and
// that the runbook names each class.
func TestTheEventsAreDocumented(t *testing.T) {
	events, runbook := pageOf(t, "events.md"), pageOf(t, "runbook.md")
	for _, kind := range event.NamedTypes() {
		if !strings.Contains(events, "| `"+kind.Name()+"` |") {
			t.Errorf("events.md has no row for %s", kind.Name())
		}
	}
	for _, class := range event.Classes() {
		if !strings.Contains(events, "| `"+string(class)+"` |") {
			t.Errorf("events.md has no row for %s", class)
		}
		if _, what, _ := strings.Cut(runbook, "\n## By class"); !strings.Contains(what, "`"+string(class)+"`") {
			t.Errorf("the runbook does not say what to do about %s", class)
		}
	}
}

// The list usual has the variables that need no documentation, because other projects define them,
// or because a test sets them for its child process.
var usual = []string{"PROJECTOR_TEST_CHILD", "PROJECTOR_TEST_PARENT", "PATH", "TERM", "NO_COLOR", "GOOS", "GOARCH", "GOGC", "JAVA_HOME"}

// TestVariablesAreDocumented shows that each environment variable that Go code reads by a constant
// name is on a page, unless it is in the variable usual. The other variables are in docs/cli.md,
// which is generated from the flags.
func TestVariablesAreDocumented(t *testing.T) {
	var pages strings.Builder
	for _, path := range allPages(t) {
		pages.WriteString(readPage(t, path))
	}
	read := regexp.MustCompile(`(?:Getenv|LookupEnv)\("([A-Z_]+)"\)`)
	found := 0
	eachFile(t, func(path string) {
		if filepath.Ext(path) != ".go" {
			return
		}
		for _, use := range read.FindAllStringSubmatch(readPage(t, path), -1) {
			found++
			if !slices.Contains(usual, use[1]) && !regexp.MustCompile(`\b`+use[1]+`\b`).MatchString(pages.String()) {
				t.Errorf("%s reads %s, which no page has", path, use[1])
			}
		}
	})
	if found < 10 {
		t.Errorf("only %d variables are read", found)
	}
}

// TestTheExampleOfAProjectionIsTheFile shows that docs/own-projection.md contains event-count.sql,
// which the tests run.
func TestTheExampleOfAProjectionIsTheFile(t *testing.T) {
	if file := readPage(t, "docs/examples/event-count.sql"); !strings.Contains(pageOf(t, "own-projection.md"), "```sql\n"+file+"```") {
		t.Error("own-projection.md does not show docs/examples/event-count.sql")
	}
}

var (
	// quoted matches the text in backquotes.
	quoted = regexp.MustCompile("`([^`\n]+)`")
	// fileName and folderName match names of files and folders of this repository.
	fileName   = regexp.MustCompile(`^\w[\w./-]*\.(go|sql|md|yaml|json|svg)$`)
	folderName = regexp.MustCompile(`^(cmd|deploy|dlq|docs|e2e|errclass|faulttest|internal|projection|readmodel|sql|tools)/[\w./-]+$`)
	testName   = regexp.MustCompile(`\b(Test|Benchmark|Fuzz)[A-Z]\w+`)
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)
)

// readersFiles are files that a page asks its reader to create.
var readersFiles = []string{"bank.yaml", "deployment.json", "kustomization.yaml"}

// TestNamesOfFilesAndTestsAreRight shows that each test that a page names exists, and that each
// file and folder that a page names in backquotes exists. The names in readersFiles are exceptions.
func TestNamesOfFilesAndTestsAreRight(t *testing.T) {
	var files []string
	tests := map[string]bool{}
	eachFile(t, func(path string) {
		files = append(files, "/"+path)
		if strings.HasSuffix(path, "_test.go") {
			for _, f := range testFunc.FindAllStringSubmatch(readPage(t, path), -1) {
				tests[f[1]] = true
			}
		}
	})
	there := func(name string) bool {
		return slices.Contains(readersFiles, name) || slices.ContainsFunc(files, func(path string) bool {
			return strings.HasSuffix(path, "/"+name) || strings.Contains(path, "/"+strings.TrimSuffix(name, "/")+"/")
		})
	}
	checked := 0
	for _, path := range allPages(t) {
		if filepath.Base(path) == "cli.md" { // this page names files of the reader
			continue
		}
		text := code.ReplaceAllString(readPage(t, path), "")
		for _, name := range quoted.FindAllStringSubmatch(text, -1) {
			if fileName.MatchString(name[1]) || folderName.MatchString(name[1]) {
				checked++
				if !there(name[1]) {
					t.Errorf("%s names %s, which is not there", path, name[1])
				}
			}
		}
		for _, name := range testName.FindAllString(text, -1) {
			checked++
			if !tests[name] {
				t.Errorf("%s names %s, which is not there", path, name)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d names", checked)
	}
}

// TestThePackageMapIsWhole shows that the table of docs/architecture.md names all packages of the
// module and nothing else. An entry includes the packages below it, unless the table also names one
// of these.
func TestThePackageMapIsWhole(t *testing.T) {
	_, table, _ := strings.Cut(pageOf(t, "architecture.md"), "\n| package | holds |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var named []string
	for row := range strings.Lines(table) {
		packages, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, name := range quoted.FindAllStringSubmatch(packages, -1) {
			if slices.Contains(named, name[1]) {
				t.Errorf("%s has two rows", name[1])
			}
			named = append(named, name[1])
		}
	}
	used := map[string]bool{}
	eachFile(t, func(file string) {
		if filepath.Ext(file) != ".go" || strings.Contains(file, "/testdata/") {
			return
		}
		dir := filepath.Dir(file)
		name := dir
		for name != "." && !slices.Contains(named, name) {
			name = filepath.Dir(name)
		}
		divided := slices.ContainsFunc(named, func(other string) bool { return strings.HasPrefix(other, name+"/") })
		if name == "." || name != dir && divided {
			t.Errorf("the map has no row for %s, where %s is", dir, file)
		}
		used[name] = true
	})
	for _, name := range named {
		if !used[name] {
			t.Errorf("the map names %s, which has no package", name)
		}
	}
	if len(named) < 30 {
		t.Errorf("only %d names", len(named))
	}
}

const root = "../.."

func pageOf(t *testing.T, name string) string {
	t.Helper()
	return readPage(t, filepath.Join("docs", name))
}

// readPage reads a file of the repository.
func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// allPages returns the paths of all pages in the repository.
func allPages(t *testing.T) []string {
	t.Helper()
	paths := []string{"README.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/decisions/*.md"} {
		found, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	return paths
}

// eachFile calls the function do with the path of every file of the repository.
func eachFile(t *testing.T, do func(path string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path == ".git" || path == "bin" || path == "dist"):
			return fs.SkipDir
		case !entry.IsDir():
			do(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
