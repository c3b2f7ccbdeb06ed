//go:build faults

package faulttest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/twmb/avro"

	"projector/internal/testbank"
)

const eventSchema = `{"type":"record","name":"Event","fields":[
	{"name":"eventId","type":"string"},{"name":"eventType","type":"string"},{"name":"accountId","type":"string"},
	{"name":"version","type":"long"},{"name":"occurredAt","type":"string"},
	{"name":"correlationId","type":["null","string"]},{"name":"data","type":["null",{"type":"map","values":"string"}]}]}`

// emptiable is a schema registry with one schema, which has the id 1. A test can delete the schema.
type emptiable struct {
	*httptest.Server
	emptied atomic.Bool
}

func newRegistry(t *testing.T) *emptiable {
	t.Helper()
	r := &emptiable{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, asked *http.Request) {
		out.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
		if r.emptied.Load() || asked.URL.Path != "/schemas/ids/1" {
			out.WriteHeader(http.StatusNotFound)
			_, _ = out.Write([]byte(`{"error_code":40403,"message":"Schema not found"}`))
			return
		}
		_ = json.NewEncoder(out).Encode(map[string]string{"schema": eventSchema})
	}))
	t.Cleanup(r.Close)
	return r
}

// write returns a function that encodes the events of a clean stream with the schema.
func (r *emptiable) write(t *testing.T) func([]testbank.Record) []testbank.Record {
	t.Helper()
	schema := avro.MustParse(eventSchema)
	return func(records []testbank.Record) []testbank.Record {
		sent := slices.Clone(records)
		for i := range sent {
			var fields struct {
				EventID       string            `json:"eventId" avro:"eventId"`
				EventType     string            `json:"eventType" avro:"eventType"`
				AccountID     string            `json:"accountId" avro:"accountId"`
				Version       int64             `json:"version" avro:"version"`
				OccurredAt    string            `json:"occurredAt" avro:"occurredAt"`
				CorrelationID *string           `json:"correlationId" avro:"correlationId"`
				Data          map[string]string `json:"data" avro:"data"`
			}
			check(t, json.Unmarshal(sent[i].Value, &fields))
			body := must(schema.Encode(&fields))(t)
			sent[i].Value = append([]byte{0, 0, 0, 0, 1}, body...)
		}
		return sent
	}
}
