package telemetry

import (
	"log/slog"
	"strconv"
)

// Attribute keys. Where OpenTelemetry's semantic conventions have a name for
// the thing, it is used, with its type: a partition id is a string there, an
// offset a number.
const (
	KeyTopic         = "messaging.destination.name"
	KeyPartition     = "messaging.destination.partition.id" // string
	KeyOffset        = "messaging.kafka.offset"             // int64
	KeyGroup         = "messaging.consumer.group.name"
	KeyMessageID     = "messaging.message.id"              // the event id
	KeyCorrelationID = "messaging.message.conversation_id" // the correlation id
	KeyBatchRecords  = "messaging.batch.message_count"     // int
	KeyClientID      = "messaging.client.id"
	KeyServerAddress = "server.address"
	KeyServerPort    = "server.port"
	KeyErrorType     = "error.type"              // a class or SQLSTATE, of few values
	KeyErrorMessage  = "exception.message"       // without amounts, payload and credentials
	KeySQLState      = "db.response.status_code" // string
	KeyDBSystem      = "db.system.name"
	KeyDBNamespace   = "db.namespace"
)

// Attribute keys of the projector's own, where the conventions have none.
const (
	KeyProjection = "projector.projection"
	KeyAccountID  = "projector.account.id"
	KeyVersion    = "projector.account.version"
	KeyClass      = "projector.dead_letter.class"
	KeyConstraint = "projector.db.constraint"
	KeyDependency = "projector.dependency"
	KeyAttempt    = "projector.retry.attempt"
	KeyDelay      = "projector.retry.delay"
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

// Partition is the pair of attributes that names a partition.
func Partition(topic string, partition int32) slog.Attr {
	return slog.GroupAttrs("", // an empty group is inlined
		slog.String(KeyTopic, topic),
		slog.String(KeyPartition, strconv.Itoa(int(partition))),
	)
}
