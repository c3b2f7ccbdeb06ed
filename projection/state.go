package projection

// State says what an assigned partition is doing. Its values are part of the public interface,
// because /status.json and the status page show them.
type State string

// In the last three states, the partition does not continue until a person acts.
const (
	StateStarting  State = "starting"  // the position is not known yet
	StateFlowing   State = "flowing"   // records are consumed
	StateIdle      State = "idle"      // all is consumed, and no record has arrived for a while
	StateThrottled State = "throttled" // more is fetched than can be written now; ends without a person
	StateRetrying  State = "retrying"  // it waits before the next attempt

	StatePaused      = State(StatusPaused)  // a person has paused it, and a person must resume it
	StateBreakerOpen = State(StatusBreaker) // too many dead letters; a person must resume it
	StateStopped     = State(StatusStopped) // a person must set its position
)

// Working reports whether the partition has started and has no problem.
func (s State) Working() bool { return s == StateFlowing || s == StateIdle || s == StateThrottled }

// Waiting reports whether the partition waits for an action of a person.
func (s State) Waiting() bool {
	return s == StatePaused || s == StateBreakerOpen || s == StateStopped
}
