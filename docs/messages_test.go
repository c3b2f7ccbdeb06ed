package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"projector/docs"
)

var (
	quoted = regexp.MustCompile("`([^`\n]+)`")
	// typed matches quoted text that a user types or sets, which is not a message.
	typed = regexp.MustCompile(`^(--|ALTER |account |dlq |inbox |kafka|kubectl |pg_|position |projector |psql |rebuild |resume |run |verify )`)
	// varies matches the parts of a message that differ each time.
	varies = regexp.MustCompile(`"?…"?|\b[A-Z]\b|\b\d+s?\b|%[-+#.\d]*[a-zA-Z]`)
)

// TestMessagesOfThePagesAreThoseOfTheProgram checks the messages of several words that
// docs/runbook.md and docs/repairs.md quote. Each message must be a text in the program or a part
// of such a text. The variable parts of a message are left out.
func TestMessagesOfThePagesAreThoseOfTheProgram(t *testing.T) {
	texts := textsOf(t, "..")
	checked := 0
	for name, page := range map[string]string{"runbook.md": docs.Runbook, "repairs.md": docs.Repairs} {
		page = regexp.MustCompile("(?s)```.*?```").ReplaceAllString(page, "")
		for _, message := range quoted.FindAllStringSubmatch(page, -1) {
			if !strings.Contains(message[1], " ") || typed.MatchString(message[1]) {
				continue
			}
			for _, part := range varies.Split(message[1], -1) {
				if part = strings.Trim(part, " :"); len(part) < 5 {
					continue
				}
				if checked++; !strings.Contains(texts, part) {
					t.Errorf("%s quotes %q: the program has no %q", name, message[1], part)
				}
			}
		}
	}
	if checked < 25 {
		t.Errorf("only %d parts of messages", checked)
	}
}

// textsOf returns the texts in the Go files of a folder, one on each line. A text is divided where
// a value is inserted into it.
func textsOf(t *testing.T, folder string) string {
	t.Helper()
	var texts strings.Builder
	files := token.NewFileSet()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin" || entry.Name() == "dist"):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			expression, isExpression := node.(ast.Expr)
			text, isText := textOf(expression)
			if isExpression && isText {
				texts.WriteString(varies.ReplaceAllString(text, "\n") + "\n")
			}
			return !isText
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts.String()
}

// textOf returns the text of an expression, even if the expression joins several texts.
func textOf(expression ast.Expr) (string, bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, isLeft := textOf(e.X)
		right, isRight := textOf(e.Y)
		return left + right, e.Op == token.ADD && isLeft && isRight
	default:
		return "", false
	}
}
