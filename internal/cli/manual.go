package cli

import (
	_ "embed"
	"strings"

	"github.com/alecthomas/kong"
)

// manual has a page for each command. --help and docs/cli.md show this page with the help line and
// the flags of the command. A page starts with the line "== COMMAND". The rest has the format of a
// Go doc comment. A page says what the command does, names special exit statuses and gives
// examples.
//
//go:embed manual.txt
var manual string

func addManual(k *kong.Kong) error {
	pages := manualPages()
	for _, node := range k.Model.Leaves(false) {
		node.Detail = pages[node.Path()]
	}
	return nil
}

func manualPages() map[string]string {
	pages := map[string]string{}
	for page := range strings.SplitSeq("\n"+manual, "\n== ") {
		path, text, _ := strings.Cut(page, "\n")
		pages[path] = strings.TrimSpace(text)
	}
	delete(pages, "") // the text before the first page
	return pages
}
