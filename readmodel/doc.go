// Package readmodel contains what all projections share in PostgreSQL. This includes transactions,
// positions, the schema, the audit trail, requests for approval, and the interface of a projection.
//
// One flush is one transaction. The transaction first updates the partition's position row. This
// update fails unless the row still has the offset and the fence that this writer knows. Each claim
// increases the fence. So if two processes believe that they own a partition, the older owner
// writes nothing.
//
// After projection.ErrFenced and projection.ErrStale, the caller reads and decides again. Other
// errors come from PostgreSQL and are classified by package errclass.
package readmodel
