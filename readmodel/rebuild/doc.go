// Package rebuild builds a projection again from the first records of its topic, in shadow
// tables, up to exactly the positions of the live tables. It compares the two and replaces the
// rows that differ, in one transaction.
//
//	Source ──records──▶ Build: decode, fold … write ──▶ Shadow: Compare, Swap ──▶ live tables
//	                      │
//	                      └── versions that people have skipped
//
// Decisions of people are repeated: a skipped version is skipped again and never applied. Dead
// letters are parked, but not published, because they have been published before.
package rebuild
