// Package consumer brings records from Kafka to a projection: one poller, one worker per
// partition, one committer.
//
//	poller ──records──▶ queue ──▶ decoder ──chunks──▶ worker: fold … flush
//	   ▲                                                 │
//	   └── pause, resume, seek ◀─────────────────────────┘ ──offset──▶ committer
//
// The poller never waits for a worker: a full queue pauses its partition. A worker folds
// chunks: it decides about each record and computes the new rows in memory. Then it flushes
// them: it publishes the dead letters, waits for their acknowledgement, writes one transaction that also moves the partition's position row, and
// marks the offset for the committer. Near the end of the partition, it flushes after each
// chunk. When it is far behind, it folds several chunks before a flush.
//
// A worker's life:
//
//	claim ──▶ seek ──▶ consume ──▶ (drained or cancelled)
//	  ▲                   │
//	  └── fenced, stale, ─┘   a transient error is retried in place, for ever
//	      refused row          a lost position stops the partition with an error
//
// A failure stops one partition: the others continue.
package consumer
