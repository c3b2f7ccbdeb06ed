// Package accounts holds the accounts of a partition in memory while records are folded: a table
// of accounts, the index of all versions, and the changes since the last flush. It decides by the
// rule of package projection. It reads missing accounts from a Store. No other package knows its
// memory layout, which makes it fast.
package accounts
