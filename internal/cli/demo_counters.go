package cli

import (
	"context"
	"fmt"

	"projector/internal/telemetry"
)

// counted is what the projector says of itself, by its metrics.
type counted struct {
	outcomes map[string]int
	healed   int
}

func (c counted) records() int {
	n := 0
	for _, of := range c.outcomes {
		n += of
	}
	return n
}

// checkOutcomes compares the outcomes the projector has counted with the ledger's.
// When Kafka has delivered records again, as it may, there are more of them.
func (d *demo) checkOutcomes(_ context.Context, f *findings) error {
	families, err := d.process.registry.Gather()
	if err != nil {
		return fmt.Errorf("read the metrics: %w", err)
	}
	f.counted.outcomes = map[string]int{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			switch family.GetName() {
			case "projector_records_total":
				for _, label := range metric.GetLabel() {
					if label.GetName() == "outcome" {
						f.counted.outcomes[label.GetValue()] += int(metric.GetCounter().GetValue())
					}
				}
			case "projector_healed_events_total":
				f.counted.healed += int(metric.GetCounter().GetValue())
			}
		}
	}
	if f.recounted = f.counted.records() - d.records; f.recounted > 0 {
		return nil
	}
	all := d.expected()
	for _, outcome := range telemetry.Outcomes() {
		if got, want := f.counted.outcomes[outcome], all[outcome]; got != want {
			f.outcomes = append(f.outcomes, fmt.Sprintf("%s: counted %d, not %d", outcome, got, want))
		}
	}
	return nil
}

// expected is how many records the ledger says come to each outcome.
func (d *demo) expected() map[string]int {
	all := map[string]int{}
	for _, of := range d.ledger.Outcomes {
		for outcome, n := range of.ByName() {
			all[outcome] += n
		}
	}
	return all
}
