package projection

// State is what an assigned partition is doing. Its values are public: /status.json and the status
// page show them.
type State string

// The states of a partition.
const (
	StateStarting    State = "starting"     // its position is not known yet
	StateFlowing     State = "flowing"      // consuming
	StateIdle        State = "idle"         // at the end, and no record has arrived for a while
	StateThrottled   State = "throttled"    // more is fetched than can be written now; it continues by itself
	StateRetrying    State = "retrying"     // backing off
	StatePaused      State = "paused"       // by a person, until one resumes it
	StateBreakerOpen State = "breaker_open" // a storm of dead letters; until a person resumes it
	StateStopped     State = "stopped"      // needs a person
)

// Working reports whether the partition works without problems.
func (s State) Working() bool { return s == StateFlowing || s == StateIdle || s == StateThrottled }

// Waiting reports whether the partition waits for a person.
func (s State) Waiting() bool {
	return s == StatePaused || s == StateBreakerOpen || s == StateStopped
}
