package projection

import "projector/projection/event"

// TakenEvent is an event that a projection of one's own is given: once. Its texts may be views
// of the record's bytes.
type TakenEvent struct {
	Event  event.Event
	Record RecordRef
}
