package cli

import (
	"strings"

	"github.com/alecthomas/kong"

	"projector/dlq"
	"projector/internal/registry"
	"projector/projection/event"
)

// suggestion is one way to go on at a word.
type suggestion struct {
	text  string // the whole word; one that ends in "=" goes on with a value
	about string // one line, may be empty
}

// suggestions are the ways to go on at a word, in the order in which help shows them.
type suggestions struct {
	list  []suggestion
	files bool // the name of a file goes here
}

// choices are the values of the flags that take one of a few, by the flag's name. Those
// that kong checks have their values in the tag enum instead.
var choices = map[string]func() []string{
	"projection": projectionNames,
	"format":     func() []string { return append(event.Formats(), registry.Formats()...) },
	"class":      classNames,
	"status": func() []string {
		var names []string
		for _, status := range dlq.Statuses() {
			names = append(names, string(status))
		}
		return names
	},
	"log-level":  func() []string { return []string{"debug", "info", "warn", "error"} },
	"log-format": func() []string { return []string{"text", "json"} },
	"tracing":    func() []string { return []string{tracingOff, tracingOTLP} },
	"sasl-mechanism": func() []string {
		return []string{mechanismPlain, mechanismScram256, mechanismScram512, mechanismOAuth}
	},
	"debezium-time-unit": func() []string {
		return []string{event.RFC3339.String(), event.Milliseconds.String(), event.Microseconds.String(), event.Nanoseconds.String()}
	},
}

// onlyTag is the tag of a flag that takes fewer values on one command than on others:
// those it names, separated by commas.
const onlyTag = "only"

// choicesOf are the values to choose from; none for a flag that takes anything.
func choicesOf(v *kong.Value) []string {
	switch only := v.Tag.Get(onlyTag); {
	case only != "":
		return strings.Split(only, ",")
	case v.Enum != "":
		return v.EnumSlice()
	case v.Flag != nil && choices[v.Name] != nil:
		return choices[v.Name]()
	default:
		return nil
	}
}

// isFile reports whether the value names a file.
func isFile(v *kong.Value) bool { return v.Tag.PlaceHolder == "FILE" }

// suggest answers how a command line can go on at its last word. words are those
// behind the program's name, without quotes; the last one may be empty.
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
		if at.arguments > 0 { // it is no command of this program
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

// reached is where words lead to.
type reached struct {
	node      *kong.Node
	arguments int        // given so far
	flag      *kong.Flag // waits for its value, or nil
}

// walk follows words from a node. It fails at "--", behind which nothing is a flag.
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

// flagNamed finds a flag of a command or of one above it, by its name with dashes.
func flagNamed(node *kong.Node, dashed string) *kong.Flag {
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			if dashed == "--"+flag.Name || flag.Short != 0 && dashed == "-"+string(flag.Short) {
				return flag
			}
		}
	}
	return nil
}

func flagsOf(node *kong.Node, begin string) suggestions {
	var s suggestions
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			text := "--" + flag.Name
			if !flag.IsBool() {
				text += "="
			}
			s.offer(text, flag.Help, begin)
		}
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

// valuesOf are the values that begin like this, each behind what stands before it. Of
// a list it is the last item that goes on.
func valuesOf(v *kong.Value, before, begin string) suggestions {
	s := suggestions{files: isFile(v)}
	if comma := strings.LastIndexByte(begin, ','); comma >= 0 && v.IsSlice() {
		before, begin = before+begin[:comma+1], begin[comma+1:]
	}
	for _, choice := range choicesOf(v) {
		s.offer(before+choice, "", before+begin)
	}
	return s
}

// offer adds a word if it begins as asked for.
func (s *suggestions) offer(text, about, begin string) {
	if strings.HasPrefix(text, begin) {
		s.list = append(s.list, suggestion{text: text, about: about})
	}
}
