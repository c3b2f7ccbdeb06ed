package protobuf

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// maxText limits the bytes of a schema and its imports. Compiling a schema of that size can
	// allocate 150 MiB.
	maxText = 512 << 10
	// maxNesting limits the nesting of braces and brackets. The compiler permits messages that are
	// nested 32 deep, but it checks this only after parsing.
	maxNesting = 100
	// maxImports limits the total number of imports in all files, because the time to compile grows
	// with the square of this number.
	maxImports = 1000
)

var errImports = fmt.Errorf("it has more than %d imports", maxImports)

// limits counts the imports while a schema is compiled.
type limits struct{ imports int }

// newLimits returns an error if a schema is too large.
func newLimits(schema string, imports map[string]string) (*limits, error) {
	size := len(schema)
	for _, text := range imports {
		size += len(text)
	}
	if size > maxText {
		return nil, fmt.Errorf("it is larger than %d bytes, its references included", maxText)
	}
	return &limits{}, nil
}

// checkImports adds n imports and returns an error if there are too many.
func (l *limits) checkImports(n int) error {
	if l.imports += n; l.imports > maxImports {
		return errImports
	}
	return nil
}

// checkText returns an error if a text would take too long to parse. The text may not be valid
// Protobuf.
func (l *limits) checkText(text string) error {
	if err := l.checkImports(strings.Count(text, "import")); err != nil {
		return err
	}
	depth := 0
	for at := 0; at < len(text); {
		switch c := text[at]; {
		case c == '"' || c == '\'':
			at += quotedLength(text[at:])
			continue
		case strings.HasPrefix(text[at:], "//"):
			at += lengthUpTo(text[at:], "\n")
			continue
		case strings.HasPrefix(text[at:], "/*"):
			at += 2 + lengthUpTo(text[at+2:], "*/")
			continue
		case strings.IndexByte("{[(<", c) >= 0:
			depth++
		case strings.IndexByte("}])>", c) >= 0:
			depth = max(depth-1, 0)
		}
		if at++; depth > maxNesting {
			return errors.New("its braces and brackets are nested too deeply")
		}
	}
	return nil
}

// quotedLength returns the length of a quoted text. If there is no closing quote, the length ends
// with the line.
func quotedLength(text string) int {
	for at := 1; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case text[0], '\n':
			return at + 1
		}
	}
	return len(text)
}

// lengthUpTo returns the length of text up to the first occurrence of the parameter end, which is
// included.
func lengthUpTo(text, end string) int {
	if i := strings.Index(text, end); i >= 0 {
		return i + len(end)
	}
	return len(text)
}
