package e2e_test

import (
	bigendian "encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"projector/internal/testbank"
)

// confluents answers as Confluent's registry does. It has schema 1. Schema 2 is forbidden for this
// user. An id that is not a Java int is not found. If refusesAll is true, the registry refuses
// every request, as for a wrong password.
func confluents(refusesAll *atomic.Bool) http.HandlerFunc {
	return func(out http.ResponseWriter, r *http.Request) {
		answer := func(status int, body string) {
			out.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
			out.WriteHeader(status)
			_, _ = out.Write([]byte(body))
		}
		id := strings.TrimPrefix(r.URL.Path, "/schemas/ids/")
		switch {
		case refusesAll.Load() || id == "2":
			answer(http.StatusForbidden, `{"error_code":40301,"message":"User is denied operation Read on Subject"}`)
		case id == "1":
			answer(http.StatusOK, `{"schema":"{\"type\":\"record\",\"name\":\"E\",\"fields\":[{\"name\":\"eventId\",\"type\":\"string\"},`+
				`{\"name\":\"eventType\",\"type\":\"string\"},{\"name\":\"accountId\",\"type\":\"string\"},{\"name\":\"version\",\"type\":\"long\"},`+
				`{\"name\":\"occurredAt\",\"type\":\"string\"}]}"}`)
		case !isInteger(id):
			answer(http.StatusNotFound, `{"error_code":404,"message":"HTTP 404 Not Found"}`)
		default:
			answer(http.StatusNotFound, `{"error_code":40403,"message":"Schema not found"}`)
		}
	}
}

// isInteger reports whether Java parses id as an Integer.
func isInteger(id string) bool {
	_, err := strconv.ParseInt(id, 10, 32)
	return err == nil
}

// ofSchema returns an AccountClosed record that begins with a schema id.
func ofSchema(id uint32, version byte) testbank.Record {
	value := bigendian.BigEndian.AppendUint32([]byte{0}, id)
	for _, text := range []string{fmt.Sprint("e-", version), "AccountClosed", "a"} {
		value = append(append(value, byte(2*len(text))), text...)
	}
	value = append(value, 2*version, 40)
	return testbank.Record{Key: []byte("a"), Value: append(value, "2026-01-01T00:00:00Z"...)}
}

// TestOneSchemaIDStopsNoPartition expects a dead letter if the registry does not have the schema id
// of a record or forbids this user to read the schema. If the registry refuses every request, no
// record may be dead-lettered.
func TestOneSchemaIDStopsNoPartition(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var refusesAll atomic.Bool
	refusesAll.Store(true)
	registry := httptest.NewServer(confluents(&refusesAll))
	defer registry.Close()
	w.produce([]testbank.Record{ofSchema(2, 9), ofSchema(1, 1), ofSchema(1<<31, 9), ofSchema(1<<32-1, 9), ofSchema(3, 9), ofSchema(1, 2)})
	p := w.start("--format=avro", "--schema-registry-url="+registry.URL, "--retry-max=1s", "--breaker-share=0")
	await(t, "unready with the reason", p.answers("/readyz", 503, "status 403"))
	if n := w.ends(w.dlq)[0]; n != 0 {
		t.Errorf("%d dead letters while all are refused", n)
	}
	refusesAll.Store(false)
	await(t, "all consumed", w.durable(0, 6))
	// The test waits for the dead letters, because the metadata cache of the client may still say
	// that the DLQ topic does not exist.
	await(t, "four dead letters", func() string {
		if n := w.ends(w.dlq)[0]; n != 4 {
			return fmt.Sprintf("%d dead letters, want 4", n)
		}
		return ""
	})
	if version := w.line(`SELECT version FROM account_balance WHERE account_id = 'a'`); version != "2" {
		t.Errorf("version %s of the account, want 2", version)
	}
	p.terminate()
}
