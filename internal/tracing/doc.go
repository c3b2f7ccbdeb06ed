// Package tracing follows single records by OpenTelemetry: from the producer's span,
// which a record names in its header traceparent (W3C Trace Context), to the
// transaction that made it durable.
//
//	the producer's trace                       a trace of its own
//	  its own span
//	  ├─ account-events receive
//	  │  └─ account-events process ◀──links──▶ account_balance flush
//	  │     └─ batch start                     ├─ pool.acquire
//	  │        └─ load_accounts                ├─ batch start
//	  └─ account-events.dlq publish            │  └─ BEGIN, position_move, insert_balance
//	                                           └─ COMMIT
//
// A statement is named after its file in sql/queries.
//
// Many events become one write, so a flush has a span of its own, linked to the
// records in it that are followed, and they to it. A flush without such a record has
// none: nothing else is traced, no status page and no repair.
//
// Which records are followed is the producer's decision; of those it says nothing
// about, a share is (Settings). The decision falls once, when the client has fetched
// the record, and costs a look at its headers. Every bound here gives up spans and
// never holds up records: too many at a time are not begun, too many that wait for a
// receiver are dropped, and both are counted.
//
// No span has a key, a value, a header, a query's parameters or the text of an error
// that could repeat them.
package tracing
