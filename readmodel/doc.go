// Package readmodel keeps the projected balances in PostgreSQL: the accounts, the
// events parked behind holes, and the position up to which a partition is durable.
//
// One flush is one transaction. It moves the partition's position row first, and
// only from the value and the fence this writer knows; so of two processes that
// both believe to own a partition, the stale one writes nothing. A fence is raised
// by each claim and by each repair, which is how a repair beside a running
// consumer makes the consumer forget what it remembers.
//
// Errors of this package are projection.ErrFenced and projection.ErrStale, which
// mean "read again and decide again", or what PostgreSQL said, for errclass.
package readmodel
