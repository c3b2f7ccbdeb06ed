// Package accounts applies records to the accounts of a partition in memory. It has a table of
// accounts, an index of all versions, and the changes since the last flush. It decides about events
// by the rules of package projection. It reads accounts that are not in memory from a Store. No
// other package depends on its memory layout, which is optimized for speed.
package accounts
