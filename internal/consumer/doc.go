// Package consumer takes records from Kafka to a projection: one poller, a worker a
// partition, one committer.
//
//	poller ──records──▶ queue ──▶ decoder ──chunks──▶ worker: fold … flush
//	   ▲                                                 │
//	   └── pause, resume, seek ◀─────────────────────────┘ ──offset──▶ committer
//
// The poller never waits for a worker: a full queue pauses its partition. A worker
// folds chunks while there are more, then flushes: it publishes the dead letters,
// waits for their acknowledgement, writes one transaction that also moves the
// partition's position row, and tells the committer. Near the end of the partition
// a flush follows each chunk; far behind it, chunks are folded together first.
//
// A worker's life:
//
//	claim ──▶ seek ──▶ consume ──▶ (drained or cancelled)
//	  ▲                   │
//	  └── fenced, stale, ─┘   a transient error is retried in place, for ever
//	      refused row          a lost position stops the partition, loudly
//
// What fails stays where it is: other partitions go on.
package consumer
