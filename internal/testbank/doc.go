// Package testbank is the bank that demo, tests and fault tests share: one generator
// of account events and one oracle that says what must become of them. It imports
// nothing but the standard library and shares no code with the projector, so that a
// mistake would have to be made twice to go unseen.
//
// The generator makes streams as a bank's topic would hold them after some bad years:
// events delivered twice, late, in another order or never, every kind of event that
// cannot be applied, tombstones, and whatever keys and headers producers come up with.
// The same options make the same stream. Generate draws incidents at random; Showcase
// is the demo's stream, with each incident once, on an account of its own.
//
// The Oracle follows the contract one record at a time: its own decoder, its own money
// (math/big), nothing batched, nothing cached. Statement and Turnover are what the
// projections of that name must hold. Package compare, below, holds PostgreSQL and the
// DLQ topic against it.
package testbank

// Header is one record header; a nil value is null, an empty one empty.
type Header struct {
	Key   string
	Value []byte
}

// Record is a record of the source topic. Records of one account stay in one partition
// and in order.
type Record struct {
	Partition int32
	Key       []byte
	Value     []byte // nil: a tombstone
	Headers   []Header

	// Where it stands, once it is in the topic. Timestamp is in milliseconds since the epoch.
	Offset    int64
	Timestamp int64

	// Transaction groups records that are produced in one transaction; 0: in none.
	Transaction int
	Abort       bool // the transaction is to be aborted
}
