package readmodel

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"projector/errclass"
	"projector/projection"
	"projector/projection/event"
)

// Apply implements Letters.
func (l *eventLetters) Apply(ctx context.Context, records []*RepairRecord, observe func(Step)) error {
	size := cmp.Or(l.cfg.Piece, repairEvents)
	if l.cfg.Rate > 0 {
		size = min(size, l.cfg.Rate)
	}
	for rest := records; len(rest) > 0; {
		start := time.Now()
		piece := rest[:min(size, len(rest))]
		if err := l.applySome(ctx, piece, ""); err != nil {
			return err
		}
		if rest = rest[len(piece):]; observe != nil {
			observe(Step{Records: len(piece)})
		}
		if l.cfg.Rate > 0 && len(rest) > 0 {
			pace := time.Duration(len(piece)) * time.Second / time.Duration(l.cfg.Rate)
			if err := wait(ctx, pace-time.Since(start)); err != nil {
				return err
			}
		}
	}
	return nil
}

// applySome applies records in one transaction, or in several when PostgreSQL refuses
// one of them: then that one is found, and recorded as refused for a reason.
func (l *eventLetters) applySome(ctx context.Context, records []*RepairRecord, refused string) error {
	err := l.transact(ctx, records, refused)
	if err == nil || errclass.Postgres(err) != errclass.Isolate || refused != "" {
		return err
	}
	if len(records) == 1 {
		return l.applySome(ctx, records, "PostgreSQL refused the row: "+errclass.Safe(err))
	}
	half := len(records) / 2
	if err := l.applySome(ctx, records[:half], ""); err != nil {
		return err
	}
	return l.applySome(ctx, records[half:], "")
}

func (l *eventLetters) transact(ctx context.Context, records []*RepairRecord, refused string) error {
	var verdicts []projection.Verdict
	err := transactOnce(ctx, l.cfg.Pool, func(attempt context.Context, tx *Tx) (err error) {
		if verdicts, err = l.fold(attempt, tx, records, refused); err != nil {
			return err
		}
		actions := make([]Action, len(records))
		for i, rec := range records {
			actions[i] = rec.Action.with(verdicts[i])
		}
		queueActions(tx, actions)
		return tx.Send(attempt)
	})
	if err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	for i, rec := range records {
		rec.Verdict, rec.Judged = verdicts[i], true
	}
	return nil
}

// fold writes what can be taken in and returns the records' verdicts.
func (l *eventLetters) fold(ctx context.Context, tx *Tx, records []*RepairRecord, refused string) ([]projection.Verdict, error) {
	verdicts, err := l.judge(ctx, tx, records)
	if err != nil {
		return nil, err
	}
	var (
		entries []Entry
		of      []int // of which record
	)
	for i, v := range verdicts {
		switch {
		case v.Outcome != projection.Applied && v.Outcome != projection.Ignored:
		case refused != "":
			verdicts[i] = projection.Verdict{Outcome: projection.DeadLettered, Class: event.RejectedByDatabase, Message: refused}
		default:
			of = append(of, i)
		}
	}
	slices.SortStableFunc(of, func(a, b int) int {
		return l.table.Key(&records[a].Decoded.Event).Compare(l.table.Key(&records[b].Decoded.Event))
	})
	for _, i := range of {
		entries = append(entries, l.entry(records[i]))
	}
	if len(entries) == 0 {
		return verdicts, nil
	}
	if err := l.table.Write(ctx, tx, entries); err != nil {
		return nil, err
	}
	for n, i := range of {
		if entries[n].Present != "" {
			verdicts[i] = judgePresent(&entries[n])
		}
	}
	return verdicts, tx.Send(ctx)
}
