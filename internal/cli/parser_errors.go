package cli

import (
	"errors"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// reworded has the errors of the parser that are printed with another text. The first three errors
// and the last one repeat what was typed as the value of a switch, as an argument or in a variable.
// People may type a secret there by mistake. The other errors do not say what to type instead.
var reworded = []struct {
	text    *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(bool value must be .*?) but got "(?s:.*?)"( \(from envar |$)`), "$1$2"},
	{regexp.MustCompile(`\(from envar (\w+)="(?s:.*)"\)$`), "(from $1)"},
	{regexp.MustCompile(`^<id>: expected a valid 64 bit int but got "(?s:.*)"$`), "<id>: is not the number of a request, such as 17; `projector requests` lists them"},
	{regexp.MustCompile(`^(--[a-z-]+ must be one of )(?:"",)?(.*) but got ("(?s:.*)")$`), "$1$2, not $3"},
	{regexp.MustCompile(`^(--[a-z-]+): expected duration but got ("(?s:.*?)"): .*?( \(from \w+\))?$`), "$1: must be a duration, such as 30s or 24h, not $2$3"},
	{regexp.MustCompile(`^(--[a-z-]+): expected a valid \d+ bit int but got ("(?s:.*?)")( \(from \w+\))?$`), "$1: must be a whole number, such as 17, not $2$3"},
	{regexp.MustCompile(`^(--[a-z-]+): expected a float but got ("(?s:.*?)") \(string\)( \(from \w+\))?$`), "$1: must be a number, such as 0.5, not $2$3"},
	{regexp.MustCompile(`^(--[a-z-]+): expected (?:int|float|duration) value but got "-[0-9.][^"]*" \(short flag\); .*$`), "$1: must not be negative"},
	{regexp.MustCompile(`^expected "(<[^"]+>)"$`), "$1: is missing; see --help"},
	{regexp.MustCompile(`^unexpected argument [^,]*$`), "an argument is not expected here; it is not shown, for it may be a password; see --help"},
}

// reword removes typed text that may be a secret from an error of the parser, and says what to type.
func reword(err error) error {
	text := err.Error()
	for _, m := range reworded {
		text = m.text.ReplaceAllString(text, m.instead)
	}
	if failed, is := errors.AsType[*kong.ParseError](err); is {
		for _, f := range failed.Context.Flags() { // the parser does not say that the value is from a variable
			name := "--" + f.Name
			text = strings.Replace(text, name+" must be one of ", name+" ("+strings.Join(f.Envs, ", ")+"): must be one of ", 1)
		}
	}
	return errors.New(text)
}
