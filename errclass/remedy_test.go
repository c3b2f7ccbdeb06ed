package errclass_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"projector/errclass"
)

// ofTheirs is about a table that is not the projector's.
type ofTheirs struct{ error }

func (ofTheirs) Remedy() string  { return "" }
func (e ofTheirs) Unwrap() error { return e.error }

// A rule on a table of the projector's was added by somebody; one on a table of somebody's own
// is his.
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
