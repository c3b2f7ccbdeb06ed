package debezium_test

import (
	"os"
	"strings"
	"testing"

	"projector/deploy/debezium"
)

// TestTheDocumentationShowsWhatIsTested checks that docs/debezium.md shows the files that the tests
// use.
func TestTheDocumentationShowsWhatIsTested(t *testing.T) {
	text, err := os.ReadFile("../../docs/debezium.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]string{
		"connector.json": "```json\n" + string(debezium.Connector) + "```\n",
		"outbox.sql":     "```sql\n" + debezium.Outbox + "```\n",
	} {
		if !strings.Contains(string(text), block) {
			t.Errorf("docs/debezium.md does not show deploy/debezium/%s unchanged", name)
		}
	}
}
