package cli

import (
	_ "embed"
	"strings"

	"github.com/alecthomas/kong"
)

// manual is what --help and docs/cli.md say of each command, in addition to its one line of help and
// its flags. A page begins with a line of its own, "== COMMAND", and is written like a Go doc
// comment, which kong formats: what the command is about, what its exit statuses mean beyond those
// of every command, and examples.
//
//go:embed manual.txt
var manual string

// addManual gives each command its page.
func addManual(k *kong.Kong) error {
	pages := manualPages()
	for _, node := range k.Model.Leaves(false) {
		node.Detail = pages[node.Path()]
	}
	return nil
}

// manualPages are the pages of the manual by the path of the command.
func manualPages() map[string]string {
	pages := map[string]string{}
	for page := range strings.SplitSeq("\n"+manual, "\n== ") {
		path, text, _ := strings.Cut(page, "\n")
		pages[path] = strings.TrimSpace(text)
	}
	delete(pages, "") // before the first page
	return pages
}
