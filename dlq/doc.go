// Package dlq is the dead letter: its headers, publishing it, reading it back.
//
// A dead letter is the consumed record as it was, key, value and headers byte
// for byte, with headers of ours under the prefix "__projector.errors." that
// say what is wrong with it and where it stood. Headers of ours from an earlier
// round are replaced, so a record that is replayed a hundred times carries them
// once, and a count.
//
// # Publishing
//
// A Publisher makes one attempt per call and retries nothing for long: the
// worker of a partition retries for ever, with backoff, and knows why. What has
// been acknowledged by all in-sync replicas is remembered in the Delivery, so a
// retry sends the rest only. Nothing but a record's size ever changes what is
// published: a record the broker refuses as too large is tried alone, then
// without its value, then without its headers, then without its key, so that no
// record can block its partition for ever.
//
// # Reading
//
// A Reader streams the topic from its first to its last stable offset as they
// stood at the start. It joins no consumer group and commits nothing. It fetches
// by hand, one partition after the other, because only then the position is
// known behind control records and compacted ones, where a consumer would wait
// for a record that never comes.
package dlq
