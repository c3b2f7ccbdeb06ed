// Package accounts applies records to the accounts of a partition in memory. It has a table of
// accounts, an index of all versions, and the changes since the last flush. It decides by the rule
// of package projection. It reads missing accounts from a Store. No other package depends on its
// memory layout, which is optimized for speed.
package accounts
