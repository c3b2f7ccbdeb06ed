//go:build kafka

package e2e_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
	"projector/internal/testbank/compare"
)

// registered is a real schema registry that has the schemas of Avro and Protobuf producers.
type registered struct {
	*devstack.Registry
	maps, records avroWriter
	proto         protoWriter
	union         unionWriter
	oneof         oneofWriter
}

// TestRealSchemaRegistry decodes Avro and Protobuf streams with a real registry. Some schemas refer
// to other schemas. All schemas are registered before the registry is stopped, so the last stream
// shows that the registry has stored them.
func TestRealSchemaRegistry(t *testing.T) {
	t.Parallel()
	registry := devtest.Registry(t)
	store := newSchemaStore(t, registry.URL())
	r := registered{registry, mapWriter(store), recordWriter(store), newProtoWriter(store), newUnionWriter(store), newOneofWriter(store)}
	t.Run("avro, and the registry is away for a while", r.changeWithoutRegistry)
	t.Run("protobuf, and ids of no schema", r.unknown)
	t.Run("avro, a union of records", nameStream{r.URL(), "avro", unionMapping, r.union.write}.decode)
	t.Run("protobuf, a oneof", nameStream{r.URL(), "protobuf", oneofMapping, r.oneof.write}.decode)
}

// changeWithoutRegistry changes the schema on one partition while the registry is stopped. That
// partition must wait and the other partitions must continue. No record may be dead-lettered
// because of the stopped registry. When the registry runs again, the partition must continue.
func (r *registered) changeWithoutRegistry(t *testing.T) {
	w := newWorld(t, 3)
	records := testbank.Generate(testbank.Options{Seed: seed(t), Records: scaled(6_000), Partitions: w.partitions, Accounts: 200, Rivals: true})
	middle := len(records) / 2
	first, plainFirst := dialect{write: r.maps.write}.speak(records[:middle])
	second, plainSecond := dialect{write: func(record *testbank.Record, n int, fields map[string]any) {
		if record.Partition == 2 {
			r.records.write(record, n, fields)
		} else {
			r.maps.write(record, n, fields)
		}
	}}.speak(records[middle:])

	p := w.start("--format=avro", "--schema-registry-url="+r.URL())
	w.produce(first)
	await(t, "the first half", w.arrived)
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.produce(second)
	await(t, "partitions whose schema is known", func() string { return w.arrivedAt(0, 1) })
	awaitWithin(t, soon, "unreadiness", p.answers("/readyz", 503, "schema_registry"))
	if w.arrivedAt(2) == "" {
		t.Error("partition 2 went on without its schema")
	}
	env := []string{
		"DATABASE_URL=" + w.url, "KAFKA_BROKERS=" + w.addrs[0], "KAFKA_TOPIC=" + w.topic, "EVENT_FORMAT=avro",
		"SCHEMA_REGISTRY_URL=" + r.URL(), "IGNORE_EVENT_TYPES=" + testbank.IgnoredType,
	}
	if status, _, errOut := once(t, env, "dlq", "list", "--output=json"); status != 1 || !strings.Contains(errOut, "schema registry") {
		t.Errorf("dlq list without the registry: status %d\n%s", status, errOut)
	}
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := w.oracleOf(slices.Concat(plainFirst, plainSecond))
	w.exact(o, compare.ExactlyOnce)
	w.conserved(p, o)
	await(t, "readiness", p.answers("/readyz", 200, ""))
	if status, out, errOut := once(t, env, "dlq", "list", "--output=json"); status != 0 || strings.Count(out, "\n") != len(o.DeadLetters) {
		t.Errorf("dlq list: status %d, %d of %d dead letters\n%s", status, strings.Count(out, "\n"), len(o.DeadLetters), errOut)
	}
	p.terminate()
	w.atRest()
}

// arrivedAt returns "" if all of the partitions are consumed to their ends.
func (w *world) arrivedAt(partitions ...int32) string {
	ends, positions := w.ends(w.topic), w.positions()
	for _, partition := range partitions {
		if positions[partition] < ends[partition] {
			return "a partition is behind"
		}
	}
	return ""
}

// The method unknown decodes messages whose Protobuf file imports another file. Values without a
// schema id or with an unknown schema id become dead letters.
func (r *registered) unknown(t *testing.T) {
	w := newWorld(t, 2)
	spoken, plain := dialect{write: r.proto.write}.speak(testbank.Generate(testbank.Options{
		Seed: seed(t), Records: scaled(3_000), Partitions: w.partitions, Accounts: 100, Rivals: true,
	}))
	for i, value := range []string{"\x00\x00\x00\xff\xff\x00", "\x00\x01", "{}", "\x01\x00\x00\x00\x01\x00"} {
		spoken = append(spoken, testbank.Record{Key: []byte("junk"), Value: []byte(value), Partition: int32(i) % 2})
		plain = append(plain, testbank.Record{Key: []byte("junk"), Value: []byte("no event"), Partition: int32(i) % 2})
	}
	w.produce(spoken)
	o := w.oracleOf(plain)
	p := w.start("--format=protobuf", "--schema-registry-url="+r.URL())
	w.exact(o, compare.ExactlyOnce)
	w.conserved(p, o)
	p.terminate()
	w.atRest()
}

// nameStream is a stream of events whose type is the name of a record or of a field.
type nameStream struct {
	registry, format, mapping string
	write                     func(r *testbank.Record, n int, fields map[string]any)
}

// decode leaves out events without a type, because a record always has a name.
func (s nameStream) decode(t *testing.T) {
	w := newWorld(t, 2)
	file := filepath.Join(t.TempDir(), "mapping.yaml")
	if err := os.WriteFile(file, []byte(s.mapping), 0o600); err != nil {
		t.Fatal(err)
	}
	records := testbank.Generate(testbank.Options{Seed: seed(t), Records: scaled(3_000), Partitions: w.partitions, Accounts: 100, Rivals: true})
	spoken, plain := dialect{write: s.write}.speak(slices.DeleteFunc(records, func(record testbank.Record) bool {
		return record.Value != nil && expressible(record.Value)["eventType"] == nil
	}))
	w.produce(spoken)
	o := w.oracleOf(plain)
	p := w.start("--format="+s.format, "--schema-registry-url="+s.registry, "--mapping="+file)
	w.exact(o, compare.ExactlyOnce)
	w.conserved(p, o)
	p.terminate()
	w.atRest()
}
