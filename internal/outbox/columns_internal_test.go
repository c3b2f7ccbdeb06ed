package outbox

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Of two columns with one name it is unknown which one is meant, so a query with both is refused.
func TestAColumnThatIsThereTwiceIsRefused(t *testing.T) {
	for names, want := range map[string]string{
		"key value":             "",
		"key value headers":     "",
		"key value other other": "",
		"key value VALUE":       "two columns that are called value",
		"value key key":         "two columns that are called key",
		"key":                   "must return the columns",
	} {
		var fields []pgconn.FieldDescription
		for name := range strings.FieldsSeq(names) {
			fields = append(fields, pgconn.FieldDescription{Name: name})
		}
		var key, value, headers []byte
		_, err := columns(fields, &key, &value, &headers)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", names, err)
		}
	}
}
