package event

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// syntaxFault says why a value is not one well-formed JSON object. It names the
// place by its byte offset and never quotes the value or a key of it.
func syntaxFault(value []byte, err error) *Fault {
	return &Fault{Class: MalformedPayload, Reason: syntaxReason(value, err)}
}

func syntaxReason(value []byte, err error) string {
	var offset int64
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		offset = syntactic.ByteOffset
	}
	switch {
	case len(value) == 0:
		return "the value is empty"
	case bytes.HasPrefix(value, []byte("\xef\xbb\xbf")):
		return "the value begins with a byte order mark"
	case errors.Is(err, errNotObject), errors.Is(err, errTrailing):
		return err.Error()
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Sprintf("a key occurs twice in one JSON object, at byte %d", offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the JSON text ends too early"
	case !utf8.Valid(value):
		return "the JSON text contains invalid UTF-8"
	case offset >= 0 && offset < int64(len(value)) && value[offset] == '\\':
		return fmt.Sprintf("a string has an invalid escape or a lone surrogate, at byte %d", offset)
	default:
		return fmt.Sprintf("the value is not valid JSON, at byte %d", offset)
	}
}
