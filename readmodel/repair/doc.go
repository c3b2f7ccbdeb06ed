// Package repair changes accounts at the request of an operator, while consumers run. It replays,
// discards and skips events, and opens accounts from a ledger.
package repair
