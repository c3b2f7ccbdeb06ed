package projection

import "projector/projection/event"

// CustomEvent is an event for a custom projection. A custom projection receives each event once.
// The texts may share memory with the record.
type CustomEvent struct {
	Event  event.Event
	Record RecordRef
}
