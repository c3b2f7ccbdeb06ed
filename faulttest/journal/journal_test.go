package journal_test

import (
	"path/filepath"
	"testing"

	"projector/faulttest/journal"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
	"projector/internal/testbank"
)

func TestMain(m *testing.M) { devtest.Main(m, nil) }

func TestJournalIsWhatTheBrokerHas(t *testing.T) {
	fake := devtest.Fake(t, devstack.FakeOptions{})
	topic := devtest.Topic(t, fake.Addrs(), 2)
	path := filepath.Join(t.TempDir(), "journal")
	sent := []testbank.Record{
		{Partition: 0, Key: []byte("k"), Value: nil},
		{Partition: 1, Key: nil, Value: []byte{}, Headers: []testbank.Header{{Key: "\xff not UTF-8"}, {Key: "bytes", Value: []byte{0xff, 0}}}},
		{Partition: 0, Key: []byte{}, Value: []byte("second")},
	}
	for range 2 { // the second producer continues the journal of the first
		p, err := journal.Open(path, topic, fake.Addrs())
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Send(t.Context(), sent); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := journal.Read(path)
	if err != nil || len(got) != 2*len(sent) {
		t.Fatalf("%d records, error %v", len(got), err)
	}
	if wrong := journal.Complete(got, map[int32]int64{0: 4, 1: 2}); wrong != "" {
		t.Error(wrong)
	}
	if wrong := journal.Complete(got[1:], map[int32]int64{0: 4, 1: 2}); wrong == "" {
		t.Error("a record is missing and nobody noticed")
	}
	for _, r := range got {
		if r.Partition == 1 && (r.Key != nil || r.Value == nil || r.Headers[0].Key != "\xff not UTF-8" || r.Headers[0].Value != nil || string(r.Headers[1].Value) != "\xff\x00") {
			t.Errorf("null, empty or bytes were lost: %+v", r)
		}
	}
}
