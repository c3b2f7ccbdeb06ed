package exit

import (
	"testing"
)

func TestAPortIsNoPassword(t *testing.T) {
	const text = `"h:port:1" is not HOST:PORT; postgres://u@h:5432/b`
	if got := typedPassword.ReplaceAllString(text, "${1}${3}***${2}"); got != text {
		t.Errorf("got %q", got)
	}
}
