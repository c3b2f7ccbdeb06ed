package process

import (
	"context"
	"time"

	client_model "github.com/prometheus/client_model/go"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/dlq"
	"projector/docs"
	"projector/internal/cli/exit"
	"projector/internal/consumer"
	"projector/internal/telemetry"
	"projector/internal/tracing"
	"projector/readmodel"
)

func (p *Process) pages() *telemetry.Server {
	p.history = telemetry.NewHistory(p.sample)
	page := telemetry.Page{
		Status: p.status(), History: p.history, DeadLetters: p.lastDeadLetters,
		Runbook: docs.Runbook, Repairs: docs.Repairs,
	}
	return telemetry.NewServer(p.cmd.Listen, p.registry, p.health, page, p.log)
}

// status returns a function that collects the content of the status page from memory.
func (p *Process) status() telemetry.StatusFunc {
	started := time.Now()
	return func() telemetry.Status {
		now := p.metrics.Snapshot()
		s := telemetry.Status{
			Version: p.built.Version, Instance: p.owner, Projection: p.kind.Name(), Group: p.cmd.GroupName(), Topic: p.cmd.Topic, DLQTopic: p.cmd.DeadLetterTopic(),
			StartedAt: started, LastProgressAt: now.ProgressAt, Partitions: p.partitions(),
			Parks: p.kind.Accounts(), Marks: p.kind.Memory() != nil, InboxRows: now.InboxRows,
		}
		if parked := p.parked.Load(); parked != nil {
			s.Parked = &telemetry.ParkedStatus{
				Accounts: parked.Accounts, Events: parked.Events, OldestGapSeconds: parked.OldestGap.Seconds(),
				ByClass: parked.ByClass,
			}
		}
		return s
	}
}

func (p *Process) partitions() []telemetry.PartitionStatus {
	described := p.PartitionStatus()
	list, margins := make([]telemetry.PartitionStatus, len(described)), p.margins.Load()
	for i := range described {
		d, s := &described[i], &list[i]
		*s = telemetry.PartitionStatus{
			Topic: p.cmd.Topic, Partition: d.Partition, State: d.State, Since: &d.Since, Reason: d.Reason,
		}
		if d.Claimed {
			s.Position = &d.Position
		}
		if d.LagKnown {
			s.End, s.LagRecords, s.LagSeconds = &d.End, &d.LagRecords, &d.LagSeconds
		}
		if margins != nil {
			m := (*margins)[d.Partition]
			s.MarginRecords = m.Records
			if m.Left != nil {
				s.MarginSeconds = new(m.Left.Seconds())
			}
		}
	}
	return list
}

func (p *Process) sample() telemetry.Sample {
	s := telemetry.Status{Partitions: p.partitions()}
	records, seconds := s.Lag()
	return telemetry.Sample{At: time.Now(), Records: p.metrics.Snapshot().Records, LagRecords: records, LagSeconds: seconds}
}

func passToPage(letters *telemetry.LastDeadLetters) func(dlq.Published) {
	return func(l dlq.Published) {
		letters.Published(telemetry.DeadLetter{
			At: l.FailedAt, Class: string(l.Class), DLQPartition: l.DLQPartition, DLQOffset: l.DLQOffset,
			Topic: l.Topic, Partition: l.Partition, Offset: l.Offset,
		})
	}
}

// Addr returns the address of the HTTP server after Listen.
func (p *Process) Addr() string { return p.server.Addr() }

// PartitionStatus describes the partitions of this instance.
func (p *Process) PartitionStatus() []consumer.PartitionStatus { return p.consumer.Status() }

// Metrics returns the metrics of the process.
func (p *Process) Metrics() ([]*client_model.MetricFamily, error) { return p.registry.Gather() }

// tracingFlags turn tracing on. OpenTelemetry's own variables set the endpoint and the share of
// records to trace. The share applies to records whose producer has not decided about tracing.
type tracingFlags struct {
	Tracing string `env:"TRACING" default:"off" placeholder:"EXPORTER" group:"Tracing" help:"off, or otlp: trace the records whose header traceparent asks for it, and a share OTEL_TRACES_SAMPLER_ARG of the others, and send the spans to OTEL_EXPORTER_OTLP_ENDPOINT (default off)."`
}

const (
	tracingOff  = "off"
	tracingOTLP = "otlp"
)

func (f *tracingFlags) validate() error {
	if f.Tracing != tracingOff && f.Tracing != tracingOTLP {
		return exit.Usagef("--tracing (TRACING): %q is unknown; use %s or %s", f.Tracing, tracingOff, tracingOTLP)
	}
	return nil
}

// traced has the options that add tracing to clients and connections. It is empty if tracing is
// off.
type traced struct {
	database   []readmodel.ConnectOption
	consuming  []kgo.Hook
	publishing []kgo.Hook
	partition  func(int32) consumer.Trace
}

func (p *Process) trace(ctx context.Context) (traced, error) {
	for _, result := range tracing.Results() {
		p.metrics.Spans(string(result), 0)
	}
	if p.cmd.Tracing != tracingOTLP {
		return traced{}, nil
	}
	ratio, err := tracing.ReadRatio()
	if err != nil {
		return traced{}, exit.WrongUsage(err)
	}
	t, err := tracing.New(ctx, tracing.Config{
		Ratio: ratio, Topic: p.cmd.Topic, Group: p.cmd.GroupName(), Projection: p.cmd.Projection, Version: p.built.Version, Log: p.log,
		Spans: func(result tracing.Result, n int) { p.metrics.Spans(string(result), n) },
	})
	if err != nil {
		return traced{}, exit.WrongUsage(err)
	}
	p.tracing = t
	return traced{
		database:   []readmodel.ConnectOption{readmodel.WithTracer(t.Database())},
		consuming:  []kgo.Hook{t.Consuming()},
		publishing: []kgo.Hook{t.Publishing()},
		partition:  func(number int32) consumer.Trace { return t.Partition(number) },
	}, nil
}

// Choices has the possible values of flags, by the flag's name.
var Choices = map[string][]string{"tracing": {tracingOff, tracingOTLP}}
