// Package readmodel contains what all projections share in PostgreSQL: transactions, positions,
// the schema, the audit trail, requests for approval, and the interface of a projection.
//
// One flush is one transaction. It first moves the partition's position row, and only from the
// offset and the fence that this writer knows. A claim raises the fence. So if two processes
// believe that they own a partition, the older owner writes nothing.
//
// The errors are projection.ErrFenced and projection.ErrStale, after which the caller reads and
// decides again, or errors of PostgreSQL, which package errclass classifies.
package readmodel
