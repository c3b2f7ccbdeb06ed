// Package telemetry is how the projector is seen from outside: metrics, health,
// the HTTP server that shows both, and the log.
//
// It knows nothing of Kafka records, accounts or SQL. The rooms that do the
// work report into it through small interfaces they declare themselves:
//
//	consumer ──▶ Metrics ──▶ Registry ──┐
//	    │                               ├──▶ Server: /metrics /livez /readyz / /status.json
//	    └──────▶ Health ────────────────┘
//
// Two questions are kept apart. Ready asks whether assigned work flows: a
// database that is down makes an instance unready. Alive asks whether a restart
// would help: only a poll loop that no longer moves does that.
//
// Nothing in this package shows payload, amounts or credentials, and no caller
// may hand them in.
package telemetry
