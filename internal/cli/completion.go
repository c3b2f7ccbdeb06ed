package cli

import (
	"bufio"
	"embed"
	"io"
	"strings"
)

// completionCmd prints a script for a shell. The scripts know no command and no flag:
// at each press of Tab they ask the program they complete, so they are never stale.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

//go:embed completion
var completionScripts embed.FS

// Run prints the script.
func (c *completionCmd) Run(std *streams) error {
	script, err := completionScripts.ReadFile("completion/projector." + c.Shell)
	if err != nil {
		return err
	}
	_, err = std.out.Write(script)
	return err
}

// completionRequest is the first word by which a script asks; the words of the command
// line up to the cursor follow. It is no command, so that nothing else has to be right:
// neither the environment nor the flags that are still being typed.
const completionRequest = "__complete"

// filesWanted is the line that asks a script for names of files.
const filesWanted = ":files"

// printSuggestions answers a script: one word a line, a tab, what it is about.
func printSuggestions(w io.Writer, s suggestions) error {
	out := bufio.NewWriter(w)
	if s.files {
		out.WriteString(filesWanted + "\n")
	}
	for _, one := range s.list {
		out.WriteString(one.text + "\t" + firstSentence(one.about) + "\n")
	}
	return out.Flush()
}

// firstSentence is what there is room for beside a word.
func firstSentence(text string) string {
	sentence, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(sentence, ".")
}
