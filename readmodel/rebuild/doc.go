// Package rebuild builds a projection again in shadow tables. It starts at the first records of the
// topic and ends exactly at the positions of the live tables. It then compares the shadow tables
// with the live tables. It replaces rows that differ, in one transaction. Some kinds of differences
// are only reported; see Kind.
//
//	Source ──records──▶ Build: decode, fold … write ──▶ Shadow: Compare, Swap ──▶ live tables
//	                      │
//	                      └── versions that people have skipped
//
// The rebuild repeats the decisions of operators. For example, a skipped version is skipped again
// and never applied. Dead letters are parked, but not published, because they have been published
// before.
package rebuild
