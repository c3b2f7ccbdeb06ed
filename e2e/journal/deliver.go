package journal

import (
	"encoding/json"
	"hash/fnv"
	"math/big"
	"math/rand/v2"
	"time"

	"projector/e2e/stream"
)

// Deliver makes the records that tell the facts: each at least once, an account's in
// one partition and in their order, some again, and now and then a whole range of a
// partition again, as a producer does that lost its own position.
func Deliver(seed uint64, facts []Fact, partitions int32) []stream.Record {
	rnd := rand.New(rand.NewPCG(seed, 9))
	var out []stream.Record
	sent := make([][]stream.Record, partitions)
	send := func(r stream.Record) {
		out = append(out, r)
		sent[r.Partition] = append(sent[r.Partition], r)
	}
	for i := range facts {
		r := record(&facts[i], partitions)
		send(r)
		before := sent[r.Partition]
		switch n := rnd.IntN(1000); {
		case n < 100:
			out = append(out, before[rnd.IntN(len(before))])
		case n < 110:
			from := rnd.IntN(len(before))
			out = append(out, before[from:min(len(before), from+1+rnd.IntN(150))]...)
		case n < 115:
			out = append(out, stream.Record{Partition: r.Partition, Key: r.Key})
		}
	}
	return out
}

// record writes a fact as a record.
func record(f *Fact, partitions int32) stream.Record {
	data := map[string]string{"currency": f.Currency}
	if f.Minor != 0 {
		data["amount"] = amount(big.NewInt(f.Minor), f.Currency)
	}
	value, err := json.Marshal(map[string]any{
		"eventId": f.ID, "eventType": f.Kind, "accountId": f.Account, "version": f.Version,
		"occurredAt": f.At.Format(time.RFC3339Nano), "correlationId": f.Correlation, "data": data, "note": stream.Marker,
	})
	if err != nil {
		panic(err) // strings and numbers only
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(f.Account))
	return stream.Record{Partition: int32(h.Sum32() % uint32(partitions)), Key: []byte(f.Account), Value: value}
}
