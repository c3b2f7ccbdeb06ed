// Package rebuild builds a projection again from the first records of its topic, in shadow
// tables, up to exactly the positions of the live tables. It compares the two and replaces the
// rows that differ, in one transaction.
//
//	Source ──records──▶ Build: decode, fold … write ──▶ Shadow: Compare, Swap ──▶ live tables
//	                      │
//	                      └── versions that people have skipped
//
// What people have done since is done again: a version that was skipped is never applied,
// whatever the topic has for it, and is skipped when its turn comes. Dead letters are decided
// and parked but not published: they have been published before.
package rebuild
