package cli

import (
	"bytes"
	"strings"
	"testing"
)

// A connection string is easily typed where none belongs; it is told without its password.
func TestWrongUsageRepeatsNoPassword(t *testing.T) {
	for _, args := range [][]string{
		{"migrate", "postgres://app:hun@ter2@db:5432/bank"},
		{"migrate", "host=db password=hun@ter2"},
		{"run", "--output=postgres://app:hun@ter2@db:5432/bank"},
		{"lag", "--brokers=app:hun@ter2@kafka:9092"},
	} {
		var stderr bytes.Buffer
		if status := execute(t.Context(), args, &bytes.Buffer{}, &stderr); status != exitUsage {
			t.Errorf("%v: status %d", args, status)
		}
		if said := stderr.String(); strings.Contains(said, "hun") || strings.Contains(said, "ter2") {
			t.Errorf("%v: %s", args, said)
		}
	}
	contains(t, typedPassword.ReplaceAllString(`"h:port:1" is not HOST:PORT; postgres://u@h:5432/b`, "${1}${3}***${2}"),
		`"h:port:1" is not HOST:PORT; postgres://u@h:5432/b`)
}
