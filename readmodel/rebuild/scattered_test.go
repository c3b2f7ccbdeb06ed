package rebuild_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"sync"
	"testing"

	"projector/projection"
	"projector/readmodel/rebuild"
)

// otherOrder is a topic whose first partition is read after the second one.
type otherOrder struct {
	log
	t      *testing.T
	shadow *rebuild.Shadow
	parked string // the table of parked events
}

// Records implements rebuild.Source.
func (o otherOrder) Records(ctx context.Context, partition int32, from, to int64) iter.Seq2[projection.Record, error] {
	for parked := 0; partition == 0 && parked < 2 && ctx.Err() == nil; {
		if err := o.shadow.Pool.QueryRow(ctx, "SELECT count(*) FROM "+o.parked).Scan(&parked); err != nil {
			o.t.Error(err)
			break
		}
	}
	return o.log.Records(ctx, partition, from, to)
}

// TestARebuildDoesNotSetAnAccountBack has an account that was moved to another partition. There, an event
// that cannot be applied and the right one follow. The rebuild reads this partition first, so it parks only
// the wrong one of the two. The account stays as it is.
func TestARebuildDoesNotSetAnAccountBack(t *testing.T) {
	value := func(version int, id, amount, currency string) string {
		return fmt.Sprintf(`{"eventId":%q,"eventType":"FundsCredited","accountId":"a","version":%d,"occurredAt":"2026-01-01T00:00:00Z","data":{"amount":%q,"currency":%q}}`,
			id, version, amount, currency)
	}
	topic := log{
		{value(1, "1", "1", "EUR"), value(2, "2", "1", "EUR")},
		{value(3, "wrong", "99", "USD"), value(3, "right", "1", "EUR"), value(4, "4", "1", "EUR")},
	}
	parkedIn := map[string]string{"account_balance": "parked_event", "summed": "projection_parked_event"}
	for _, d := range definitions(t) {
		if !d.ordered {
			continue
		}
		t.Run(d.Name(), func(t *testing.T) {
			pool := openPool(t)
			c := newConsumer(d, pool, topic)
			c.consumeTo(t, map[int32]int64{0: 2, 1: 0})
			c.consumeTo(t, map[int32]int64{0: 2, 1: 3})
			want := d.state(t, pool)
			shadow, err := rebuild.OpenShadow(t.Context(), pool, d.Definition, 100, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = shadow.Close(context.WithoutCancel(t.Context())) }()
			build, err := shadow.Build(t.Context(), rebuild.Config{
				Source: otherOrder{topic, t, shadow, parkedIn[d.Name()]}, Formats: d.formats, FirstVersion: 1, Topic: topicName, TopicID: "id", Starts: topic.starts(),
			})
			if err != nil {
				t.Fatal(err)
			}
			catchUp := func(ctx context.Context, positions []rebuild.TopicPosition) error {
				ends := map[int32]int64{}
				for _, at := range positions {
					ends[at.Partition] = at.Next
				}
				return build.Advance(ctx, ends, nil)
			}
			report, err := shadow.Compare(t.Context(), rebuild.CompareOptions{Topic: topicName, List: 100}, catchUp)
			if err != nil || report.Kinds[rebuild.Ahead] != 1 || len(report.Differences) != 1 {
				t.Errorf("%+v, %v", report, err)
			}
			if _, err := shadow.Swap(t.Context(), rebuild.SwapOptions{Topic: topicName, Actor: "me"}, catchUp); err != nil {
				t.Error(err)
			}
			if got := d.state(t, pool); !maps.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// begun notes the order in which partitions are first read.
type begun struct {
	log
	mu    *sync.Mutex
	order *[]int32
}

// Records implements rebuild.Source.
func (b begun) Records(ctx context.Context, partition int32, from, to int64) iter.Seq2[projection.Record, error] {
	b.mu.Lock()
	defer b.mu.Unlock()
	*b.order = append(*b.order, partition)
	return b.log.Records(ctx, partition, from, to)
}

// TestPartitionsAreReadInTheirOrder expects the order of the numbers, apart from the four partitions that are
// read at once. If an account has events in several partitions, the result may depend on the order, and must
// not change from one run to the next without need.
func TestPartitionsAreReadInTheirOrder(t *testing.T) {
	topic, ends := log{}, map[int32]int64{}
	for n := range 24 {
		topic = append(topic, []string{credit(fmt.Sprintf("a%d", n), 1, "1", "EUR")})
		ends[int32(n)] = 1
	}
	d := definitions(t)[0]
	shadow, err := rebuild.OpenShadow(t.Context(), openPool(t), d.Definition, 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = shadow.Close(context.WithoutCancel(t.Context())) }()
	var order []int32
	build, err := shadow.Build(t.Context(), rebuild.Config{
		Source: begun{topic, new(sync.Mutex), &order}, Formats: d.formats, FirstVersion: 1, Topic: topicName, TopicID: "id", Starts: topic.starts(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := build.Advance(t.Context(), ends, nil); err != nil {
		t.Fatal(err)
	}
	for at, partition := range order {
		if int(partition) > at+3 {
			t.Fatalf("partitions are read in the order %v", order)
		}
	}
}
