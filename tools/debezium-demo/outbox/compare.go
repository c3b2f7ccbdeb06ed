package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// arrivalLimit is how long the last event may take from the outbox to the read model. Usually an
// event takes much less time.
const arrivalLimit = 3 * time.Minute

// awaitArrival waits until every topic is consumed to its end and every read model has as many
// events as its bank's outbox. After arrivalLimit it returns without an error, and report shows
// what is missing.
func (s *stage) awaitArrival(ctx context.Context) error {
	err := await(ctx, arrivalLimit, func(ctx context.Context) (bool, error) {
		ends, err := s.ends(ctx)
		if err != nil {
			return false, err
		}
		for _, p := range s.pipelines {
			select {
			case <-p.projector.Ended():
				return false, p.projector.Stop(ctx)
			default:
			}
			if arrived, err := p.arrived(ctx, ends[p.topic]); !arrived || err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if errors.Is(err, errTooSlow) {
		s.say("not everything has arrived within %s", arrivalLimit)
		return nil
	}
	return err
}

const readArrived = `
SELECT coalesce((SELECT sum(next_offset) FROM projector_position), 0)::bigint,
       coalesce((SELECT sum(version) FROM account_balance), 0)::bigint`

// arrived reports whether the read model has as many events as the outbox and whether the projector
// is at the end of its topic.
func (p *pipeline) arrived(ctx context.Context, end int64) (bool, error) {
	inOutbox, err := p.bank.EventCount(ctx)
	if err != nil {
		return false, err
	}
	var position, events int64
	if err := p.readModel.QueryRow(ctx, readArrived).Scan(&position, &events); err != nil {
		return false, fmt.Errorf("look into the read model of %s: %w", p.topic, err)
	}
	return events >= inOutbox && position == end, nil
}

// report stops the projectors and compares each read model with its bank's books.
func (s *stage) report(ctx context.Context) (*Report, error) {
	if err := s.stopProjectors(ctx); err != nil {
		return nil, err
	}
	ends, err := s.ends(ctx)
	if err != nil {
		return nil, err
	}
	report := &Report{Took: time.Since(s.began)}
	for _, p := range s.pipelines {
		result := Result{Pipeline: p.name, Topic: p.topic, Records: ends[p.topic], DeadLetters: ends[p.dlqTopic()]}
		if result.Events, err = p.bank.EventCount(ctx); err != nil {
			return nil, err
		}
		if err := p.compare(ctx, &result); err != nil {
			return nil, err
		}
		if len(result.Differences) == 0 { // if there are differences, the result is already wrong
			if result.Verified, err = s.verify(ctx, p); err != nil {
				return nil, err
			}
		}
		report.Results = append(report.Results, result)
	}
	return report, nil
}

const readBalances = `
SELECT account_id, coalesce(currency::text, ''), coalesce(balance::text, ''), coalesce(version, 0),
       CASE WHEN stale THEN 'stale' ELSE coalesce(status, '') END
FROM account_balance_current`

func (p *pipeline) compare(ctx context.Context, result *Result) error {
	books, err := p.bank.Accounts(ctx)
	if err != nil {
		return err
	}
	rows, err := p.readModel.Query(ctx, readBalances)
	if err != nil {
		return fmt.Errorf("read the balances of %s: %w", p.topic, err)
	}
	shown, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Account])
	if err != nil {
		return fmt.Errorf("read the balances of %s: %w", p.topic, err)
	}
	result.Accounts = len(books)
	for _, got := range shown {
		want, known := books[got.ID]
		delete(books, got.ID)
		if what := difference(got, want, known); what != "" {
			result.Differences = append(result.Differences, got.ID+" "+what)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(books)) {
		result.Differences = append(result.Differences, id+" is missing")
	}
	slices.SortFunc(result.Differences, cmp.Compare[string])
	return nil
}

// difference describes how an account in the read model differs from the books, or returns "". The
// text contains no amount.
func difference(got, want Account, known bool) string {
	switch {
	case !known:
		return "is unknown to the bank"
	case got.Version != want.Version:
		return fmt.Sprintf("has version %d, not %d", got.Version, want.Version)
	case got.Currency != want.Currency:
		return fmt.Sprintf("has currency %q, not %q", got.Currency, want.Currency)
	case got.Status != want.Status:
		return fmt.Sprintf("is %s, not %s", got.Status, want.Status)
	case got.Balance != want.Balance:
		return "has another balance"
	}
	return ""
}
