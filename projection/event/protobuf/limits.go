package protobuf

import (
	"errors"
	"fmt"
	"strings"
)

const (
	// maxText bounds a schema with all that it imports, in bytes. Compiling one of that size
	// allocates 150 MiB.
	maxText = 512 << 10
	// maxNesting bounds how deeply braces and brackets are within each other. The compiler
	// permits 32 messages, and looks at that when it has parsed all of them.
	maxNesting = 100
	// maxImports bounds the imports of all files: they take quadratic time.
	maxImports = 1000
)

var errImports = fmt.Errorf("it has more than %d imports", maxImports)

// limits are what compiling one schema may cost.
type limits struct{ imports int }

// newLimits refuses a schema that is too large, before anything of it is compiled.
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

// checkImports counts the imports of one file.
func (l *limits) checkImports(n int) error {
	if l.imports += n; l.imports > maxImports {
		return errImports
	}
	return nil
}

// checkText refuses a text that takes too long to parse. It need not be a schema.
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

// quotedLength is the length of a text in quotes, or of the rest of its line.
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

// lengthUpTo is the length up to and including end.
func lengthUpTo(text, end string) int {
	if i := strings.Index(text, end); i >= 0 {
		return i + len(end)
	}
	return len(text)
}
