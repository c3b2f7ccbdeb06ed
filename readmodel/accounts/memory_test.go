package accounts

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"
	"unsafe"
	"weak"

	"projector/projection"
	"projector/projection/event"
)

// emptyStore holds no accounts.
type emptyStore struct{}

func (emptyStore) Accounts(context.Context, []string, func(*projection.StoredAccount)) error {
	return nil
}

func (emptyStore) Parked(context.Context, string, int64, int) ([]projection.Parked, bool, error) {
	return nil, false, nil
}

func (emptyStore) Versions(context.Context) *VersionIndex { return nil }

// A large batch is followed by a smaller one. The fold reuses its lists, but these must not hold
// the accounts of the large batch.
func TestAccountsThatAreForgottenKeepNoMemory(t *testing.T) {
	f := NewFold(Options{FirstVersion: 1, ParkLimit: 10, CacheBytes: 1 << 20}, emptyStore{})
	euro, _ := event.CurrencyByCode("EUR")
	met := 0
	flush := func(accounts int) {
		var records []projection.DecodedRecord
		for range accounts {
			met++
			id := fmt.Sprintf("acc-%08d", met)
			records = append(records, projection.DecodedRecord{Decoded: event.Decoded{Identity: event.Identified, Event: event.Event{
				ID: id, AccountID: id, Version: 1, Type: event.TypeNamed("FundsCredited"), Amount: 1, Currency: euro,
			}}})
		}
		if n, err := f.Apply(t.Context(), records, math.MaxInt); n != accounts || err != nil {
			t.Fatalf("%d records folded, error %v", n, err)
		}
		if n := f.Gather().NumRows(); n != accounts {
			t.Fatalf("%d rows", n)
		}
		f.Flushed()
	}
	flush(7000)
	last := weak.Make(f.cache.cold.slabs[len(f.cache.cold.slabs)-1])
	flush(5000)
	runtime.GC()
	if last.Value() != nil {
		t.Error("accounts of the first batch are still in memory")
	}
	runtime.KeepAlive(f)
}

// The texts of an event share the memory of the response in which Kafka sent its record. The fold
// must not keep this memory, because a response has records of many partitions.
func TestTheLastEventKeepsNoRecordInMemory(t *testing.T) {
	f := NewFold(Options{FirstVersion: 1, ParkLimit: 10, CacheBytes: 1 << 20}, emptyStore{})
	response := apply(t, f)
	runtime.GC()
	if response.Value() != nil {
		t.Error("the response is still in memory")
	}
	runtime.KeepAlive(f)
}

// apply applies an event. It returns a pointer to the response that contains the texts of the event.
func apply(t *testing.T, f *Fold) weak.Pointer[[1 << 16]byte] {
	t.Helper()
	response, d := recordOf()
	if n, err := f.Apply(t.Context(), []projection.DecodedRecord{{Decoded: d}}, math.MaxInt); n != 1 || err != nil {
		t.Fatalf("%d records folded, error %v", n, err)
	}
	return response
}

// recordOf returns the first event of an account, and a pointer to the memory of its texts.
func recordOf() (weak.Pointer[[1 << 16]byte], event.Decoded) {
	response := new([1 << 16]byte)
	copy(response[:], "acc-00000001")
	id := unsafe.String(&response[0], len("acc-00000001")) //nolint:gosec // G103: as a decoder does
	euro, _ := event.CurrencyByCode("EUR")
	return weak.Make(response), event.Decoded{Identity: event.Identified, Event: event.Event{
		ID: id, AccountID: id, Version: 1, Type: event.TypeNamed("FundsCredited"), Amount: 1, Currency: euro,
	}}
}

// waitingStore has an account that waits for its next event. The event is parked.
type waitingStore struct {
	emptyStore
	parked projection.Parked
}

func (waitingStore) Accounts(_ context.Context, ids []string, found func(*projection.StoredAccount)) error {
	found(&projection.StoredAccount{ID: ids[0], Account: projection.NewAccount(1), Parked: 1, NextParked: 1, NextClass: event.VersionGap})
	return nil
}

func (s *waitingStore) Parked(context.Context, string, int64, int) ([]projection.Parked, bool, error) {
	return []projection.Parked{s.parked}, false, nil
}

// A parked event may be as large as a record may be, and there are many partitions.
func TestTheLastParkedEventIsNotKeptInMemory(t *testing.T) {
	s := &waitingStore{}
	f := NewFold(Options{FirstVersion: 1, ParkLimit: 10, CacheBytes: 1 << 20}, s)
	record, parked := recordOf()
	s.parked = projection.Parked{Decoded: parked, Class: event.VersionGap, Expected: 1}
	if err := f.Read(t.Context(), []string{"acc-00000001"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Heal(t.Context(), 10); err != nil || f.Pending().Events != 1 {
		t.Fatal(f.Pending(), err)
	}
	f.Flushed()
	s.parked = projection.Parked{}
	runtime.GC()
	if record.Value() != nil {
		t.Error("the parked event is still in memory")
	}
	runtime.KeepAlive(f)
}
