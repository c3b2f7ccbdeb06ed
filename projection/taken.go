package projection

import "projector/projection/event"

// TakenEvent is an event for a custom projection, which gets it once. Its texts may be views
// of the record's bytes.
type TakenEvent struct {
	Event  event.Event
	Record RecordRef
}
