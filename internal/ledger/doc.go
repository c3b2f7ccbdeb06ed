// Package ledger holds the read model against an authoritative ledger: it reads the
// ledger's accounts, sorts them within bounded memory, and compares.
//
//	CSV or query ──Entry──▶ Sorter ──ascending──▶ Comparison ◀──ascending── read model
//
// It knows no database. Its errors name places, fields and accounts, never a
// balance.
package ledger
