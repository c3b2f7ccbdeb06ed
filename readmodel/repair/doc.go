// Package repair changes accounts at the request of a person, while consumers run: it replays,
// discards and skips events, and opens accounts from a ledger.
package repair
