package e2e_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"projector/internal/testbank"
	"projector/internal/testbank/compare"
)

// dialect is a wire format of the program, with a function that converts an event of the default
// format. The function write gets a record whose value, key and headers it may change. The
// parameter fields has the members of the event: the number version, the object data, and strings.
type dialect struct {
	flags []string
	write func(r *testbank.Record, n int, fields map[string]any)
}

func text(v any) []byte {
	value, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: v consists of strings, numbers and maps
	}
	return value
}

// The function plain returns a field as the value of a header.
func plain(v any) []byte {
	if s, isText := v.(string); isText {
		return []byte(s)
	}
	return text(v)
}

// prepend puts headers before the existing headers. If a name occurs twice, readers use the first
// header.
func prepend(r *testbank.Record, fields map[string]any, names ...string) {
	var headers []testbank.Header
	for pair := range slices.Chunk(names, 2) {
		if v, there := fields[pair[0]]; there {
			headers = append(headers, testbank.Header{Key: pair[1], Value: plain(v)})
		}
	}
	r.Headers = append(headers, r.Headers...)
}

// debezium writes the payload alternately as an object and as a JSON string, as the JsonConverter
// of Kafka Connect does.
func debezium(r *testbank.Record, n int, fields map[string]any) {
	prepend(r, fields, "eventId", "id", "eventType", "eventType", "version", "sequence", "occurredAt", "occurredAt", "correlationId", "correlationId")
	r.Key, r.Value = nil, text(fields["data"])
	account, there := fields["accountId"]
	if there {
		r.Key = plain(account)
	}
	if n%2 == 0 {
		r.Value = text(string(r.Value))
		if there {
			r.Key = text(account)
		}
	}
}

// cloudEvent writes structured and binary CloudEvents alternately.
func cloudEvent(r *testbank.Record, n int, fields map[string]any) {
	if n%2 == 0 {
		value := map[string]any{"specversion": "1.0", "source": "/bank"}
		for ours, theirs := range map[string]string{
			"eventId": "id", "eventType": "type", "accountId": "subject", "occurredAt": "time", "correlationId": "correlationid", "data": "data",
		} {
			if v, there := fields[ours]; there {
				value[theirs] = v
			}
		}
		if version, there := fields["version"]; there {
			value["sequence"] = string(plain(version))
		}
		prepend(r, map[string]any{"type": "application/cloudevents+json; charset=utf-8"}, "type", "content-type")
		r.Value = text(value)
		return
	}
	fields["specversion"], fields["type"] = "1.0", "application/json"
	prepend(r, fields, "eventId", "ce_id", "eventType", "ce_type", "accountId", "ce_subject", "version", "ce_sequence",
		"occurredAt", "ce_time", "correlationId", "ce_correlationid", "specversion", "ce_specversion", "type", "content-type")
	r.Value = text(fields["data"])
	if _, there := fields["data"]; !there && (fields["eventType"] == "AccountClosed" || fields["eventType"] == testbank.IgnoredType) {
		r.Value = nil // an event without data has an empty value
	}
}

const otherNames = `
eventTypes:
  MoneyDeposited: FundsCredited
fields:
  eventId: meta.id
  version: meta.seq
  accountId: {key: true}
  correlationId: {header: trace}
  data: ""
  amount: money.value
`

// The function renamed writes the layout that the mapping file otherNames describes.
func renamed(r *testbank.Record, _ int, fields map[string]any) {
	meta := map[string]any{}
	value := map[string]any{"meta": meta}
	for _, name := range []string{"eventType", "occurredAt"} {
		if v, there := fields[name]; there {
			value[name] = v
		}
	}
	if value["eventType"] == "FundsCredited" {
		value["eventType"] = "MoneyDeposited"
	}
	for ours, theirs := range map[string]string{"eventId": "id", "version": "seq"} {
		if v, there := fields[ours]; there {
			meta[theirs] = v
		}
	}
	if data, there := fields["data"].(map[string]any); there {
		for name, v := range data {
			if name == "amount" {
				value["money"] = map[string]any{"value": v}
			} else {
				value[name] = v
			}
		}
	}
	prepend(r, fields, "correlationId", "trace")
	r.Key, r.Value = nil, text(value)
	if account, there := fields["accountId"]; there {
		r.Key = plain(account)
	}
}

// The function expressible returns the fields of an event that every format can express. It returns
// nil if the value is not JSON. It omits fields with a wrong JSON type, and moves the field note
// into data.
func expressible(value []byte) (fields map[string]any) {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	if decoder.Decode(&fields) != nil || fields == nil {
		return nil
	}
	for _, name := range []string{"eventId", "eventType", "accountId", "occurredAt", "correlationId"} {
		if _, isText := fields[name].(string); !isText {
			delete(fields, name)
		}
	}
	if _, isNumber := fields["version"].(json.Number); !isNumber {
		delete(fields, "version")
	}
	data, isObject := fields["data"].(map[string]any)
	if isObject {
		data["note"] = fields["note"]
	} else {
		delete(fields, "data")
	}
	delete(fields, "note")
	return fields
}

// speak converts a stream to a dialect. The second result is the same stream in the default format,
// which the oracle reads.
func (d dialect) speak(records []testbank.Record) (spoken, plain []testbank.Record) {
	for n, r := range records {
		said := r
		if r.Value != nil {
			fields := expressible(r.Value)
			if fields == nil {
				continue
			}
			r.Value = text(fields)
			d.write(&said, n, fields)
		}
		spoken, plain = append(spoken, said), append(plain, r)
	}
	return spoken, plain
}

// oracleOf returns an oracle that has processed the given records instead of the records of the
// topic. Each given record gets the offset of the corresponding record in the topic.
func (w *world) oracleOf(records []testbank.Record) *testbank.Oracle {
	w.t.Helper()
	queues := map[int32][]testbank.Record{}
	for _, r := range records {
		queues[r.Partition] = append(queues[r.Partition], r)
	}
	actual := map[string]*testbank.Record{}
	place := func(r *testbank.Record) string {
		return strconv.Itoa(int(r.Partition)) + "/" + strconv.FormatInt(r.Offset, 10)
	}
	var plain []testbank.Record
	for _, r := range w.read(w.topic) {
		actual[place(&r)] = &r
		said := queues[r.Partition][0]
		queues[r.Partition] = queues[r.Partition][1:]
		p := r
		p.Value, p.Headers = said.Value, said.Headers
		plain = append(plain, p)
	}
	o := testbank.New(testbank.IgnoredType)
	o.Decide(plain)
	for i := range o.DeadLetters {
		o.DeadLetters[i].Record = actual[place(o.DeadLetters[i].Record)]
	}
	return o
}

// TestStreamInEveryFormat sends a stream in three other formats. Each time it expects the read
// model of the oracle, which reads the stream in the default format.
func TestStreamInEveryFormat(t *testing.T) {
	t.Parallel()
	names := filepath.Join(t.TempDir(), "names.yaml")
	if err := os.WriteFile(names, []byte(otherNames), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]dialect{
		"debezium-outbox": {[]string{"--format=debezium-outbox", "--debezium-version-header=sequence"}, debezium},
		"cloudevents":     {[]string{"--format=cloudevents"}, cloudEvent},
		"other names":     {[]string{"--mapping=" + names}, renamed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 3)
			spoken, plain := d.speak(testbank.Generate(testbank.Options{
				Seed: seed(t), Records: scaled(10_000), Partitions: w.partitions, Accounts: 300, Rivals: true,
			}))
			w.produce(spoken)
			o := w.oracleOf(plain)
			p := w.start(d.flags...)
			w.exact(o, compare.ExactlyOnce)
			w.conserved(p, o)
			p.terminate()
			w.atRest()
		})
	}
}

// TestRepairsHonourTheFormat expects repairs to decode parked events and dead letters in the format
// of the topic.
func TestRepairsHonourTheFormat(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	p := w.start("--format=debezium-outbox")
	for version := 1; version <= 4; version++ {
		r := testbank.Record{}
		fields := expressible(credit("acc", version).Value)
		if version == 2 {
			fields["occurredAt"] = "1795261827475594" // microseconds of a column without time zone, which need --debezium-time-unit
		}
		debezium(&r, version, fields)
		r.Headers[2].Key = "version"
		w.produce([]testbank.Record{r})
	}
	await(t, "the hole", w.reads("acc", "1 0.01 true 2"))
	env := []string{"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0], "KAFKA_TOPIC=" + w.topic, "EVENT_FORMAT=debezium-outbox"}
	await(t, "all dead letters", func() string {
		if status, out, errOut := once(t, env, "dlq", "list", "--output=json"); status != 0 || bytes.Count([]byte(out), []byte("\n")) != 3 {
			return out + errOut
		}
		return ""
	})
	// With DEBEZIUM_TIME_UNIT set, the stored record can be decoded. It is the missing event.
	status, out, errOut := once(t, append(env, "DEBEZIUM_TIME_UNIT=us"), "dlq", "replay", "--account=acc", "--yes")
	if status != 0 {
		t.Fatalf("dlq replay: exit status %d\n%s%s", status, out, errOut)
	}
	await(t, "the healing", w.reads("acc", "4 0.04 false"))
	p.terminate()
}
