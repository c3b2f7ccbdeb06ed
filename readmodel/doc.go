// Package readmodel contains what all projections share in PostgreSQL. This includes transactions,
// positions, the schema, the audit trail, requests for approval, and the interface of a projection.
//
// A flush is written in one transaction. Small flushes of several partitions may share a
// transaction. The transaction first updates the partition's position row. If the row no longer has
// the offset and the fence that this writer knows, the update changes no row and the transaction is
// rolled back. Each claim increases the fence. So if two processes believe that they own a
// partition, the older owner writes nothing.
//
// After projection.ErrFenced and projection.ErrStale, the caller reads and decides again. Package
// errclass classifies the errors of PostgreSQL.
package readmodel
