// Package topic reads ranges of records of any topic: a whole topic, a part of one
// partition, or one record.
//
// It joins no consumer group and commits nothing. It fetches by hand, one partition after
// the other, because only then the position after control records and compacted records is
// known. A consumer would wait there for a record that never comes.
package topic
