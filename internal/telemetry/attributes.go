package telemetry

import "log/slog"

// Attribute keys. Where OpenTelemetry's semantic conventions have a name for
// the thing, it is used, with its type: a partition id is a string there, an
// offset a number.
const (
	KeyTopic         = "messaging.destination.name"
	KeyPartition     = "messaging.destination.partition.id" // string
	KeyOffset        = "messaging.kafka.offset"             // int64
	KeyGroup         = "messaging.consumer.group.name"
	KeyServerAddress = "server.address"
	KeyErrorMessage  = "exception.message" // without amounts, payload and credentials
)

// Attribute keys of the projector's own, where the conventions have none.
const (
	KeyDependency = "projector.dependency"
	KeySuppressed = "projector.log.suppressed" // equal lines not written since the last one
)

// Err is the attribute of an error's text. The caller sees to it that the text
// carries no row, payload or connection string.
func Err(err error) slog.Attr {
	if err == nil {
		return slog.String(KeyErrorMessage, "")
	}
	return slog.String(KeyErrorMessage, err.Error())
}
