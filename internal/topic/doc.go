// Package topic reads ranges of records of any topic: a whole topic, a part of one
// partition, or one record.
//
// The package joins no consumer group and commits nothing. It sends fetch requests itself, one
// partition after the other. A consumer does not report the offsets of compacted and aborted
// records. At the end of a range, a consumer would therefore wait for a record that never comes.
package topic
