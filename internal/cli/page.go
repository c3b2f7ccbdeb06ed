package cli

import (
	"time"

	"projector/dlq"
	"projector/internal/telemetry"
)

// pages makes the server of health, metrics and the status page.
func (p *process) pages(c *runCmd) *telemetry.Server {
	p.history = telemetry.NewHistory(func() telemetry.Sample { return p.sample(c.Topic) })
	page := telemetry.Page{Status: p.status(c), History: p.history, Letters: p.letters}
	return telemetry.NewServer(c.Listen, p.registry, p.health, page, p.log)
}

// status answers what the status page shows, from memory.
func (p *process) status(c *runCmd) telemetry.StatusFunc {
	started := time.Now()
	reports := p.kind.Reports()
	return func() telemetry.Status {
		told := p.metrics.Told()
		s := telemetry.Status{
			Version: p.built.Version, Projection: c.Projection, Group: c.group(), Topic: c.Topic, DLQTopic: c.dlqTopic(),
			StartedAt: started, LastProgressAt: told.ProgressAt, Partitions: p.partitions(c.Topic),
			Parks: reports.Parked, Marks: reports.Inbox, InboxRows: told.InboxRows,
		}
		if parked := p.parked.Load(); parked != nil {
			s.Parked = &telemetry.ParkedStatus{
				Accounts: parked.Accounts, Events: parked.Events, OldestGapSeconds: parked.OldestGap.Seconds(),
			}
		}
		return s
	}
}

// partitions are those of this instance, as the consumer describes them.
func (p *process) partitions(topic string) []telemetry.PartitionStatus {
	described := p.consumer.Status()
	list := make([]telemetry.PartitionStatus, len(described))
	for i := range described {
		d, s := &described[i], &list[i]
		*s = telemetry.PartitionStatus{
			Topic: topic, Partition: d.Partition, State: telemetry.State(d.State), Since: &d.Since, Reason: d.Reason,
		}
		if d.Claimed {
			s.Position = &d.Position
		}
		if d.LagKnown {
			s.End, s.LagRecords, s.LagSeconds = &d.End, &d.LagRecords, &d.LagSeconds
		}
	}
	return list
}

// sample is what the charts of the status page know of this moment.
func (p *process) sample(topic string) telemetry.Sample {
	s := telemetry.Status{Partitions: p.partitions(topic)}
	records, seconds := s.Lag()
	return telemetry.Sample{At: time.Now(), Records: p.metrics.Told().Records, LagRecords: records, LagSeconds: seconds}
}

// letterBook makes the page show the letters the publisher has published.
func letterBook(letters *telemetry.Letters) func(dlq.Published) {
	return func(l dlq.Published) {
		letters.Published(telemetry.DeadLetter{
			At: l.FailedAt, Class: string(l.Class), DLQPartition: l.DLQPartition, DLQOffset: l.DLQOffset,
			Topic: l.Topic, Partition: l.Partition, Offset: l.Offset,
		})
	}
}
