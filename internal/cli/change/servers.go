package change

import (
	"projector/internal/cli/events"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
)

// Servers has the flags of servers, queries and output. A request does not store them, because the
// approver sets them.
type Servers struct {
	flags.KafkaFlags
	flags.DatabaseFlags
	events.RegistryFlags
	flags.OutboxFlags
	flags.LedgerServerFlags
	output.LogFlags
	output.Flags
}

// lend copies these flags to a change. The change keeps the topics of the request.
func (s *Servers) lend(c Change) {
	*c.Database() = s.DatabaseFlags
	if f, has := c.(interface{ Kafka() *flags.KafkaFlags }); has {
		topic, dlqTopic := f.Kafka().Topic, f.Kafka().DLQTopic
		*f.Kafka() = s.KafkaFlags
		f.Kafka().Topic, f.Kafka().DLQTopic = topic, dlqTopic
	}
	if f, has := c.(interface{ Registry() *events.RegistryFlags }); has {
		*f.Registry() = s.RegistryFlags
	}
	if f, has := c.(interface{ OutboxServer() *flags.OutboxFlags }); has {
		*f.OutboxServer() = s.OutboxFlags
	}
	if f, has := c.(interface {
		LedgerServer() *flags.LedgerServerFlags
	}); has {
		*f.LedgerServer() = s.LedgerServerFlags
	}
	if f, has := c.(interface{ Logs() *output.LogFlags }); has {
		*f.Logs() = s.LogFlags
	}
	*c.Printed() = s.Flags
}
