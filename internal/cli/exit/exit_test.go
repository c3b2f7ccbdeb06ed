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

func TestNoPartOfAPasswordIsShown(t *testing.T) {
	for text, want := range map[string]string{ //nolint:gosec // made-up passwords
		`host=h password='a secret b' user=u`:                   `host=h password=*** user=u`,
		`host=h password = secret user=u`:                       `host=h password = *** user=u`,
		`password='it\'s a secret'`:                             `password=***`,
		`password='a secret`:                                    `password=***`,
		`"postgres://u:se:cret@h:5432/b"`:                       `"postgres://u:***@h:5432/b"`,
		`postgres://h/b?user=u&password=secret&sslmode=require`: `postgres://h/b?user=u&password=***&sslmode=require`,
	} {
		if got := typedPassword.ReplaceAllString(text, "${1}${3}***${2}"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
