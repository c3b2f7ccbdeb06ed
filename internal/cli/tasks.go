package cli

import (
	"cmp"
	"context"
	"time"

	"projector/internal/retry"
	"projector/internal/telemetry"
	"projector/readmodel"
)

// observer is what projections tell beside what the consumer does.
type observer struct {
	*telemetry.Metrics
	p *process
}

var _ readmodel.Observer = observer{}

// Parked counts what waits behind holes, for the status page too.
func (o observer) Parked(accounts, events int64, oldestGap time.Duration) {
	o.Metrics.Parked(accounts, events, oldestGap)
	o.p.parked.Store(&readmodel.ParkedSummary{Accounts: accounts, Events: events, OldestGap: oldestGap})
}

// keep does a task at once and then at its pace until ctx ends. What fails is told
// and done the next time.
func (p *process) keep(ctx context.Context, task readmodel.Task) {
	tick := time.NewTicker(task.Every)
	defer tick.Stop()
	log := retry.Throttle(p.log, nil, task.Name, telemetry.KeyDependency, telemetry.DependencyPostgres)
	for {
		within, cancel := context.WithTimeout(ctx, cmp.Or(task.Within, task.Every))
		err := task.Run(within)
		cancel()
		if ctx.Err() == nil {
			log.Note(err, task.Every)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
