package cli

import (
	"bufio"
	"embed"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"projector/internal/cli/change"
	"projector/internal/cli/database"
	"projector/internal/cli/dlq"
	"projector/internal/cli/events"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/cli/process"
)

// completionCmd prints a completion script for a shell. The scripts contain no names of commands or
// flags. At each press of Tab they ask the program for these names, so new commands need no new
// script.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

//go:embed completion
var completionScripts embed.FS

func (c *completionCmd) Run(std *output.Streams) error {
	script, err := completionScripts.ReadFile("completion/projector." + c.Shell)
	if err != nil {
		return err
	}
	_, err = std.Out.Write(script)
	return err
}

// completionRequest is the first argument with which a script calls the program. The words of the
// command line up to the cursor follow. It is not a command of the parser, so completion works
// even if variables or unfinished flags are invalid.
const completionRequest = "__complete"

// filesWanted is the output line after which a script completes file names.
const filesWanted = ":files"

// printSuggestions prints the answer for a script: on each line a word, a tab and its description.
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

func firstSentence(text string) string {
	sentence, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(sentence, ".")
}

type suggestion struct {
	text  string // the whole word; after a final "=" a value follows
	about string // one line, may be empty
}

// suggestions are the possible completions of a word, in the order of the help.
type suggestions struct {
	list  []suggestion
	files bool // a file name may follow
}

// choices has the possible values of flags by flag name, from the packages that define the flags.
// Flags that kong checks have their values in the tag enum instead.
var choices = merged(flags.ProjectionChoices, events.Choices, dlq.Choices, output.LogChoices, process.Choices, flags.SecurityChoices, change.RequestChoices, database.Choices)

func merged(all ...map[string][]string) map[string][]string {
	one := map[string][]string{}
	for _, some := range all {
		maps.Copy(one, some)
	}
	return one
}

// onlyTag is the tag of a flag that accepts fewer values in one command than in others. It lists
// these values, separated by commas.
const onlyTag = "only"

// choicesOf returns the possible values of a flag. It returns nil if the possible values are not
// listed.
func choicesOf(v *kong.Value) []string {
	switch only := v.Tag.Get(onlyTag); {
	case only != "":
		return strings.Split(only, ",")
	case v.Enum != "":
		return v.EnumSlice()
	case v.Flag != nil:
		return choices[v.Name]
	default:
		return nil
	}
}

func isFile(v *kong.Value) bool { return v.Tag.PlaceHolder == "FILE" }

// suggest returns the completions of the last word. The argument words contains the words after the
// program's name, without quotes. The last word may be empty.
func suggest(app *kong.Application, words []string) suggestions {
	if len(words) == 0 {
		return suggestions{}
	}
	done, last := words[:len(words)-1], words[len(words)-1]
	at, ok := walk(app.Node, done)
	name, value, assigned := strings.Cut(last, "=")
	switch {
	case !ok:
		return suggestions{}
	case at.flag != nil:
		return valuesOf(at.flag.Value, "", last)
	case strings.HasPrefix(last, "-") && assigned:
		if flag := flagNamed(at.node, name); flag != nil {
			return valuesOf(flag.Value, name+"=", value)
		}
		return suggestions{}
	case strings.HasPrefix(last, "-"):
		return flagsOf(at.node, last)
	case len(at.node.Children) > 0:
		if at.arguments > 0 { // the words name no command
			return suggestions{}
		}
		return commandsOf(at.node, last)
	case at.arguments < len(at.node.Positional):
		return valuesOf(at.node.Positional[at.arguments], "", last)
	case last == "":
		return flagsOf(at.node, last)
	default:
		return suggestions{}
	}
}

type reached struct {
	node      *kong.Node
	arguments int        // number of arguments so far
	flag      *kong.Flag // the flag that waits for its value, or nil
}

// walk follows the words of a command line from a node. It returns false after "--", because no
// flags follow.
func walk(node *kong.Node, words []string) (at reached, ok bool) {
	at.node = node
	for _, word := range words {
		if at.flag != nil {
			at.flag = nil
			continue
		}
		if word == "--" {
			return at, false
		}
		if name, _, assigned := strings.Cut(word, "="); strings.HasPrefix(word, "-") {
			if flag := flagNamed(at.node, name); flag != nil && !assigned && !flag.IsBool() {
				at.flag = flag
			}
			continue
		}
		if child := childNamed(at.node, word); child != nil {
			at.node, at.arguments = child, 0
			continue
		}
		at.arguments++
	}
	return at, true
}

func childNamed(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// flagsAt returns the flags that may follow a node, including those of its default command.
func flagsAt(node *kong.Node) []*kong.Flag {
	if node.DefaultCmd != nil {
		node = node.DefaultCmd
	}
	return slices.Concat(node.AllFlags(true)...)
}

// flagNamed finds a flag of a command or its parents by its name with dashes.
func flagNamed(node *kong.Node, dashed string) *kong.Flag {
	for _, flag := range flagsAt(node) {
		if dashed == "--"+flag.Name || flag.Short != 0 && dashed == "-"+string(flag.Short) {
			return flag
		}
	}
	return nil
}

func flagsOf(node *kong.Node, begin string) suggestions {
	var s suggestions
	for _, flag := range flagsAt(node) {
		text := "--" + flag.Name
		if !flag.IsBool() {
			text += "="
		}
		s.offer(text, flag.Help, begin)
	}
	return s
}

func commandsOf(node *kong.Node, begin string) suggestions {
	var s suggestions
	for _, child := range node.Children {
		if !child.Hidden {
			s.offer(child.Name, child.Help, begin)
		}
	}
	return s
}

// valuesOf returns the values of a flag or an argument that start with the text begin. Each
// returned value begins with prefix. In a list, only the last item is completed.
func valuesOf(v *kong.Value, prefix, begin string) suggestions {
	s := suggestions{files: isFile(v)}
	if comma := strings.LastIndexByte(begin, ','); comma >= 0 && v.IsSlice() {
		prefix, begin = prefix+begin[:comma+1], begin[comma+1:]
	}
	for _, choice := range choicesOf(v) {
		s.offer(prefix+choice, "", prefix+begin)
	}
	return s
}

func (s *suggestions) offer(text, about, begin string) {
	if strings.HasPrefix(text, begin) {
		s.list = append(s.list, suggestion{text: text, about: about})
	}
}
