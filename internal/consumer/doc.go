// Package consumer brings records from Kafka to a projection. It has one poller, one worker per
// partition, and one committer.
//
//	poller ──records──▶ queue ──▶ decoder ──chunks──▶ worker: fold … flush
//	   ▲                                                 │
//	   └── pause, resume, seek ◀─────────────────────────┘ ──offset──▶ committer
//
// The poller never waits for a worker, because a full queue pauses its partition. A worker folds
// chunks, which means that it decides about each record and computes the new rows in memory. Then
// the worker makes a flush in three steps. First, it publishes the dead letters and waits for their
// acknowledgement. Second, it writes one transaction with the rows and the partition's new
// position. Third, it marks the offset for the committer. When it has folded all records up to the
// end of the partition, it flushes immediately. As long as many records are unread, it folds
// several chunks before a flush.
//
// A worker has these states:
//
//	claim ──▶ seek ──▶ consume ──▶ (drained or cancelled)
//	  ▲                   │
//	  └── fenced, stale, ─┘   other transient errors are retried without a new claim, for ever
//	      refused row,         a lost position stops the partition with an error
//	      failed write
//
// A failure that concerns one partition does not stop the others.
package consumer
