package rebuild_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection"
	"projector/readmodel"
)

// reader reads one partition of a topic that is a list of values.
type reader struct {
	*worker
	t       *testing.T
	number  int32
	topic   []string
	letters []string // the dead letters: event ids and classes
}

func newReader(t *testing.T, pool *pgxpool.Pool, number int32, topic []string, group string) *reader {
	t.Helper()
	r := &reader{t: t, worker: newWorker(t, pool, readmodel.Partition{Group: group, Topic: "events", Number: number}), number: number, topic: topic}
	r.MustClaim("me", projection.NoOffset)
	return r
}

// readTo reads records up to an offset and writes them, like a consumer. If necessary, it claims
// again and continues from its durable position.
func (r *reader) readTo(offset int64) {
	r.t.Helper()
	for tries := 0; r.Next < offset; tries++ {
		err := r.try(offset)
		if errors.Is(err, projection.ErrFenced) || errors.Is(err, projection.ErrStale) {
			r.MustClaim("me", projection.NoOffset)
		} else if err != nil {
			r.t.Fatal(err)
		}
		if tries > 10 {
			r.t.Fatalf("partition %d does not get beyond offset %d: %v", r.number, r.Next, err)
		}
	}
}

func (r *reader) try(offset int64) error {
	records := r.Records(r.topic[r.Next:offset]...)
	for i := range records {
		records[i].Record.Partition = r.number
	}
	for len(records) > 0 {
		n, err := r.Fold(r.t.Context(), records, 1000)
		if err != nil {
			return err
		}
		if records = records[n:]; n == 0 {
			break
		}
	}
	if err := r.write(); err != nil {
		return err
	}
	for more := true; more; {
		var err error
		if more, err = r.Heal(1000); err != nil {
			return err
		}
		if r.Pending().Events > 0 {
			if err := r.write(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *reader) write() error {
	changes, err := r.VerifyAndFlush()
	for i := range changes.DeadLetters {
		r.letters = append(r.letters, changes.DeadLetters[i].EventID+" "+string(changes.DeadLetters[i].Class))
	}
	return err
}

// state returns everything that readers can query.
func state(t *testing.T, pool *pgxpool.Pool) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(lines(t, pool, `SELECT concat_ws(' ', account_id, currency, balance, version, status, last_event_id, stale, waiting_for_version)
		FROM account_balance_current ORDER BY account_id`)) {
		account, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[account] = rest
	}
	return all
}
