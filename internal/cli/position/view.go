package position

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/cli/margin"
	"projector/projection"
	"projector/readmodel"
)

// positionView sees from outside where the partitions of one group stand.
type positionView struct {
	lag     *lagView
	pool    *pgxpool.Pool
	adm     *kadm.Client
	remarks []string // what could not be found out, and why
}

func newPositionView(pool *pgxpool.Pool, client *kgo.Client, group, topic string) *positionView {
	return &positionView{lag: newLagView(pool, client, group, topic), pool: pool, adm: kadm.NewClient(client)}
}

// partitionPosition is where one partition stands.
type partitionPosition struct {
	partitionLag
	state  projection.Standing // running also while nobody owns it, stopped also by its owner alone
	reason string              // why it does not go on
	owner  string              // who goes on; empty: nobody, or not known
	margin *time.Duration      // until retention takes the first unread record; nil: never, or not known
}

// read reads where the partitions stand, in order.
func (v *positionView) read(ctx context.Context) ([]partitionPosition, error) {
	stored, err := readmodel.LoadPositions(ctx, v.pool, v.lag.group, v.lag.topic)
	if err != nil {
		return nil, err
	}
	lags, err := v.lag.readWith(ctx, stored)
	if err != nil {
		return nil, err
	}
	retention, assigned := v.retention(ctx), v.assigned(ctx)
	partitions := make([]partitionPosition, len(lags))
	for i := range lags {
		p := partitionPosition{partitionLag: lags[i], state: projection.StandingRunning, margin: marginOf(retention, &lags[i])}
		at := slices.IndexFunc(stored, func(s projection.StoredPosition) bool { return s.Partition == p.partition })
		if at >= 0 {
			p.stand(&stored[at], assigned[p.partition])
		}
		partitions[i] = p
	}
	return partitions, nil
}

// stand takes note of what is stored of the partition, which a member of the group has or
// has not.
func (p *partitionPosition) stand(stored *projection.StoredPosition, assigned bool) {
	if assigned {
		p.owner = stored.Owner
	}
	p.state = projection.StandingStopped
	switch stopped := stored.Stands(); {
	case p.recreated:
		p.reason = "the stored position belongs to another topic of this name (deleted, or of another cluster). See the runbook, \"topic recreated\""
	case stopped != nil:
		p.state, p.reason = stopped.Standing, stopped.Reason
	case p.end != nil && stored.Next < p.start:
		p.reason = fmt.Sprintf("offsets %d to %d were removed by retention before they were consumed. See the runbook, \"position expired\"",
			stored.Next, p.start-1)
	case stored.HaltedReason != "":
		p.reason = stored.HaltedReason
	default:
		p.state = projection.StandingRunning
	}
}

// retention is how long the topic keeps a record; nil: no limit by time, or not known.
func (v *positionView) retention(ctx context.Context) *time.Duration {
	retention, err := margin.Retention(ctx, v.adm, v.lag.topic)
	if err != nil {
		v.remark("how long the topic keeps records", "DESCRIBE_CONFIGS on topic "+v.lag.topic, err)
	}
	return retention
}

// assigned are the partitions that a member of the group has now.
func (v *positionView) assigned(ctx context.Context) map[int32]bool {
	groups, err := v.adm.DescribeGroups(ctx, v.lag.group)
	group := groups[v.lag.group]
	if err == nil {
		err = group.Err
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		v.remarks = append(v.remarks, fmt.Sprintf("Kafka does not know group %s: nobody owns the partitions", v.lag.group))
		return nil
	}
	if err != nil {
		v.remark("who owns the partitions", "DESCRIBE on group "+v.lag.group, err)
		return nil
	}
	assigned := map[int32]bool{}
	for _, member := range group.Members {
		consumer, is := member.Assigned.AsConsumer()
		if !is {
			continue
		}
		for _, topic := range consumer.Topics {
			for _, p := range topic.Partitions {
				if topic.Topic == v.lag.topic {
					assigned[p] = true
				}
			}
		}
	}
	return assigned
}

// remark says what is not known, and which permission would help.
func (v *positionView) remark(what, permission string, err error) {
	text := errclass.Safe(err)
	if errclass.Kafka(err).Unready() {
		text = "missing ACL: " + permission + ": " + text
	}
	v.remarks = append(v.remarks, what+" is not known: "+text)
}
