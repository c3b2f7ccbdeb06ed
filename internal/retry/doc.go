// Package retry repeats what a dependency refused, for ever: 1 s, ×2, jitter,
// a cap, no end. An outage of PostgreSQL or Kafka is waited out; it never turns
// into a dead letter.
//
//	attempt ──ok──────────────► nil
//	   │ └─Stop(err)──────────► err
//	   │ └─ctx ended──────────► cause of ctx
//	 error
//	   ▼
//	Observer.Failing, wait ──ctx ended──► cause of ctx
//	   │
//	   └──► attempt
//
// Every attempt has a deadline of its own. Its passing is a failure like any
// other: only the end of the caller's context ends the loop.
package retry
