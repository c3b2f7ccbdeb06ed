// Package topic reads ranges of records of any topic: a whole topic, a part of one
// partition, or one record.
//
// It joins no consumer group and commits nothing. It fetches by hand, one partition after
// the other, because only then the position is known behind control records and compacted
// ones, where a consumer would wait for a record that never comes.
package topic
