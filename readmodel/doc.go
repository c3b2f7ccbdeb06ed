// Package readmodel has what all projections share in PostgreSQL: transactions, positions, the
// schema, the audit trail, requests, and what a projection is.
//
// One flush is one transaction. It moves the partition's position row first, and only from the
// value and the fence that this writer knows. So of two processes that both believe to own a
// partition, the stale one writes nothing. A claim raises the fence.
//
// Errors of this package are projection.ErrFenced and projection.ErrStale, which mean "read
// again and decide again", or PostgreSQL's errors, for errclass.
package readmodel
