package credential

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

var errEmpty = errors.New("the file is empty")

// Secret is the text of a file without the line ends behind it: a password or a token.
func Secret(path string) (string, error) {
	text, err := os.ReadFile(path) //nolint:gosec // G304: the operator says which file
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" {
		return "", &fs.PathError{Op: "read", Path: path, Err: errEmpty}
	}
	return secret, nil
}
