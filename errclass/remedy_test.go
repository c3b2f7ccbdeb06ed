package errclass_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"projector/errclass"
)

// ofTheirs is an error about a table that does not belong to the projector.
type ofTheirs struct{ error }

func (ofTheirs) Remedy() string  { return "" }
func (e ofTheirs) Unwrap() error { return e.error }

// A constraint on a projector's table was added by somebody and can be removed. A constraint on a
// user's own table belongs to the user.
func TestRemedy(t *testing.T) {
	check := fmt.Errorf("write: %w", &pgconn.PgError{Code: "23514"})
	if text := errclass.Remedy(check); !strings.Contains(text, "change the constraint") {
		t.Errorf("a check: %q", text)
	}
	for _, err := range []error{fmt.Errorf("write: %w", ofTheirs{check}), &pgconn.PgError{Code: "22003"}, errors.New("another")} {
		if text := errclass.Remedy(err); text != "" {
			t.Errorf("%v: %q", err, text)
		}
	}
}
