// Package projection is the pure heart: what events do to an account. It knows
// no Kafka, no SQL, no clock and no goroutine, so every rule of it can be held
// against an oracle in memory.
package projection
