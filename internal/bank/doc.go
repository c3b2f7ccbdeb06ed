// Package bank is a small pretended bank for the demo: a stream of account events
// as a bank's systems would produce it, and a ledger that says what must become of
// it.
//
// The Stream is the same for the same options. Beside the ordinary life of its
// accounts it holds mishaps, each on an account of its own: events delivered twice,
// late or never, and every kind of event that cannot be applied.
//
// The Ledger reads the records as they were produced and judges them one by one,
// without batches, caches or a database. It shares no code with the projection it
// is held against: its own decoder, its own money (math/big), its own rules,
// written from the contract. It knows the part of the contract that a Stream can
// touch and no more; it is no second consumer.
package bank
