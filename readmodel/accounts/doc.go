// Package accounts is what a partition remembers of accounts while it folds records: a
// table in memory, the index of all versions, and what has changed since the last flush.
// It decides by the rule of package projection, and reads what it lacks from a Store. The
// memory layout it uses to be fast is known nowhere else.
package accounts
