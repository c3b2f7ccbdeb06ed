package events_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/twmb/franz-go/pkg/kgo"
	"google.golang.org/protobuf/encoding/protowire"

	"projector/internal/cli/clitest"
)

const examples = "../../../docs/examples/mappings/"

// TestProducersOfTheExamples shows that the mapping of each example gives exact balances.
func TestProducersOfTheExamples(t *testing.T) {
	for name, tt := range map[string]struct {
		flags    map[string]string
		balances string
	}{
		"card-processor": {map[string]string{"FIRST_VERSION": "0"}, "K7 1050 JPY 0, K9 8.01 EUR 4"},
		"core-bank":      {nil, "DE-A 872.49 EUR 5, DE-B 125.50 EUR 1, DE-FEES 2.01 EUR 1, DE-SUSPENSE -1000.00 EUR 1"},
		"payments-api":   {nil, "cus_9 14.01 USD 3"},
		"debezium-table": {nil, "017-4711 99.95 CHF 2, 018-4711 7.10 CHF 1"},
		"protobuf-money": {map[string]string{"EVENT_FORMAT": "protobuf"}, "w-1 10.24 EUR 2, w-2 0.01 EUR 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.NewStage(t)
			t.Setenv("EVENT_MAPPING", examples+name+".yaml")
			for variable, value := range tt.flags {
				t.Setenv(variable, value)
			}
			if name == "protobuf-money" {
				t.Setenv("SCHEMA_REGISTRY_URL", registryOf(t))
				for _, value := range movements() {
					s.Append(&kgo.Record{Value: value})
				}
			} else {
				s.Produce(linesOf(t, examples+name+".jsonl")...)
			}
			s.Consuming(nil)
			clitest.Equal(t, s.Text("SELECT string_agg(concat_ws(' ', account_id, balance, currency, version), ', ' ORDER BY account_id) FROM account_balance"), tt.balances)
			clitest.Equal(t, fmt.Sprint(len(s.Lines("dlq", "list"))), "0")
		})
	}
}

func linesOf(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// registryOf returns the URL of a schema registry. The registry has the example's file as schema 7,
// without references, as a producer in Java registers it.
func registryOf(t *testing.T) (url string) {
	t.Helper()
	file, err := os.ReadFile(examples + "protobuf-money.proto")
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Schema     string `json:"schema"`
		SchemaType string `json:"schemaType"`
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
		_ = json.MarshalWrite(w, schema{Schema: string(file), SchemaType: "PROTOBUF"})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// movements returns record values that are messages of the example, encoded with schema 7.
func movements() [][]byte {
	message := func(id string, kind uint64, wallet string, revision uint64, units, nanos uint64) []byte {
		text := func(b []byte, n protowire.Number, s string) []byte {
			return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
		}
		number := func(b []byte, n protowire.Number, v uint64) []byte {
			return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), v)
		}
		b := binary.BigEndian.AppendUint32([]byte{0}, 7)
		b = append(b, 0) // the index of the first message
		b = number(text(number(text(b, 1, id), 2, kind), 3, wallet), 4, revision)
		b = protowire.AppendBytes(protowire.AppendTag(b, 5, protowire.BytesType), number(nil, 1, 1767225600))
		return protowire.AppendBytes(protowire.AppendTag(b, 6, protowire.BytesType), number(number(text(nil, 1, "EUR"), 2, units), 3, nanos))
	}
	return [][]byte{
		message("a", 1, "w-1", 1, 12, 490_000_000),
		message("b", 2, "w-1", 2, 2, 250_000_000),
		message("c", 1, "w-2", 1, 0, 10_000_000),
	}
}
