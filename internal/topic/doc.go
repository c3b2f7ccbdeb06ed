// Package topic reads ranges of records of any topic: a whole topic, a part of one
// partition, or one record.
//
// It joins no consumer group and commits nothing. It sends fetch requests itself, one partition
// after the other, because a consumer does not report offsets of control records and compacted
// records. At such offsets a consumer would wait for a record that never comes.
package topic
