package readmodel

import (
	"projector/projection"
)

// repairFold folds one run over the account's state. It decides as a consumer
// does and writes nothing.
type repairFold struct {
	run    *Run
	known  projection.Account // as the database has it
	state  projection.State   // after what was folded
	load   parkedLoader
	parked []projection.Parked // read and not yet looked at
	more   bool                // the database may hold further ones behind them

	next     int // of run.records
	verdicts []projection.Verdict
	healed   int
	stuck    bool // the parked event whose turn it is cannot be applied
	// last marks the event folded last as refused by PostgreSQL; false: it was already.
	last func(reason string) bool
}

// parkedLoader reads parked events of the fold's account above a version, in order.
// more: there may be further ones behind them.
type parkedLoader func(above int64, limit int) (parked []projection.Parked, more bool, err error)

func newRepairFold(run *Run, known projection.Account, load parkedLoader) *repairFold {
	return &repairFold{run: run, known: known, state: known.State, load: load, more: known.Parked > 0, next: run.next}
}

// fold folds until nothing is left to do or the budget of events is spent.
func (f *repairFold) fold(budget *int) error {
	for ; *budget > 0 && !f.idle(); *budget-- {
		if f.mayJudge() {
			f.judge()
		} else if err := f.heal(); err != nil {
			return err
		}
	}
	return nil
}

// finishShortQueue heals what is parked behind a hole that a record has filled just now,
// when that is little: readers then see it with the record.
func (f *repairFold) finishShortQueue() error {
	if len(f.verdicts) == 0 || f.known.Parked > healPiece {
		return nil
	}
	for f.mayHeal() {
		if err := f.heal(); err != nil {
			return err
		}
	}
	return nil
}

// idle reports whether nothing is left to do.
func (f *repairFold) idle() bool { return f.next == len(f.run.records) && !f.mayHeal() }

// mayHeal reports whether a parked event may fit, as far as is known without
// reading it.
func (f *repairFold) mayHeal() bool {
	return !f.stuck && (len(f.parked) > 0 || f.more) && f.known.NextParked <= f.state.Version+1
}

// mayJudge reports whether it is a record's turn: the next one fits or is passed,
// or no parked event can fill the hole before it.
func (f *repairFold) mayJudge() bool {
	if f.next == len(f.run.records) {
		return false
	}
	return f.run.records[f.next].Decoded.Event.Version <= f.state.Version+1 || !f.mayHeal()
}

func (f *repairFold) judge() {
	rec := f.run.records[f.next]
	f.next++
	f.last = func(reason string) bool { return f.run.refuse(rec, reason) }
	next, v := f.state.Judge(&rec.Decoded, rec.JudgedBefore)
	if reason, refused := f.run.refused[rec]; refused {
		next, v = f.state.JudgeRefused(&rec.Decoded, rec.JudgedBefore, reason)
	}
	f.verdicts = append(f.verdicts, v)
	f.advance(next)
}

// heal applies the parked event whose turn it is, or finds that there is none.
func (f *repairFold) heal() error {
	if len(f.parked) == 0 {
		if err := f.read(); err != nil || len(f.parked) == 0 {
			return err
		}
	}
	p := &f.parked[0]
	version := p.Decoded.Event.Version
	next, _, turn := f.state.Heal(p, f.run.refusedParked[version])
	switch turn {
	case projection.TurnOver: // a record has filled its place
		f.parked = f.parked[1:]
	case projection.TurnTaken:
		f.last = func(reason string) bool { return f.run.refuseParked(version, reason) }
		f.parked = f.parked[1:]
		f.healed++
		f.advance(next)
	case projection.TurnFailed, projection.TurnWaits: // the consumer dead-letters what has failed
		f.known.NextParked, f.stuck = version, true
	}
	return nil
}

func (f *repairFold) read() (err error) {
	f.parked, f.more, err = f.load(f.state.Version, healPiece)
	return err
}

func (f *repairFold) advance(next projection.State) {
	if next.Version != f.state.Version {
		f.state, f.stuck = next, false
	}
}

// changes adds what the fold wants written.
func (f *repairFold) changes(c *projection.Changes) {
	if f.state.Version == f.known.State.Version {
		return
	}
	c.Rows = append(c.Rows, projection.Row{
		AccountID: f.run.AccountID, State: f.state, Base: f.known.State.Version, Exists: f.known.Exists,
	})
	if f.known.Parked > 0 || f.known.Overflowed {
		c.Passed = append(c.Passed, projection.Passed{AccountID: f.run.AccountID, Version: f.state.Version})
	}
}

// judged pairs the records judged by this fold with their verdicts.
func (f *repairFold) judged(each func(*RepairRecord, projection.Verdict)) {
	for i, v := range f.verdicts {
		each(f.run.records[f.run.next+i], v)
	}
}

// settle takes note that what was folded counts.
func (f *repairFold) settle() {
	f.judged(func(rec *RepairRecord, v projection.Verdict) { rec.Verdict, rec.Judged = v, true })
	f.run.next, f.run.done = f.next, f.idle()
}

func (r *Run) refuse(rec *RepairRecord, reason string) bool {
	if r.refused == nil {
		r.refused = map[*RepairRecord]string{}
	}
	_, again := r.refused[rec]
	r.refused[rec] = reason
	return !again
}

func (r *Run) refuseParked(version int64, reason string) bool {
	if r.refusedParked == nil {
		r.refusedParked = map[int64]string{}
	}
	_, again := r.refusedParked[version]
	r.refusedParked[version] = reason
	return !again
}
