// Package oracle says what a stream of account events comes to, straight from the
// contract: one event after the other, nothing batched, nothing cached, every
// number unbounded. It shares no code with the projector, so that a mistake would
// have to be made twice to go unseen.
package oracle

import "slices"

// Header is one record header; a nil value is null, an empty one empty.
type Header struct {
	Key   string
	Value []byte
}

// Record is a committed record of the source topic, where it stands.
type Record struct {
	Partition int32
	Offset    int64
	Timestamp int64 // milliseconds since the epoch
	Key       []byte
	Value     []byte
	Headers   []Header
}

// Letter is a dead letter that must be in the DLQ.
type Letter struct {
	Record *Record
	Class  string
	// Account and what follows are known only when Identified.
	Identified                    bool
	Account, EventID, Correlation string
	Expected, Received            int64
}

// Outcomes counts records by what became of them.
type Outcomes struct{ Applied, Duplicate, Ignored, DeadLettered int }

// Oracle holds what has been judged so far. Its exported fields are the rules an
// operator can set, and what it has found.
type Oracle struct {
	FirstVersion int64
	Ignore       map[string]bool
	// Refuse says which event the database refuses; nil: none.
	Refuse func(account string, version int64) bool

	Letters  []Letter
	Outcomes map[int32]*Outcomes
	Healed   int

	accounts map[string]*account
}

// New returns an oracle that has seen nothing; versions begin at 1.
func New(ignore ...string) *Oracle {
	o := &Oracle{FirstVersion: 1, Ignore: map[string]bool{}, Outcomes: map[int32]*Outcomes{}, accounts: map[string]*account{}}
	for _, kind := range ignore {
		o.Ignore[kind] = true
	}
	return o
}

// Judge judges records in the order in which they stand in their partitions.
func (o *Oracle) Judge(records []Record) {
	ordered := make([]*Record, len(records))
	for i := range records {
		ordered[i] = &records[i]
	}
	slices.SortStableFunc(ordered, func(a, b *Record) int {
		if a.Partition != b.Partition {
			return int(a.Partition - b.Partition)
		}
		return int(a.Offset - b.Offset)
	})
	for _, r := range ordered {
		o.judge(r)
	}
}

func (o *Oracle) judge(r *Record) {
	count := o.Outcomes[r.Partition]
	if count == nil {
		count = &Outcomes{}
		o.Outcomes[r.Partition] = count
	}
	d := o.decode(r)
	switch {
	case d.tombstone, d.skip:
		count.Ignored++
	case !d.identified:
		count.DeadLettered++
		o.Letters = append(o.Letters, Letter{Record: r, Class: d.class})
	default:
		o.judgeEvent(r, &d, count)
	}
}

func (o *Oracle) judgeEvent(r *Record, d *decoded, count *Outcomes) {
	a := o.account(d.account)
	if d.version <= a.version {
		if d.version == a.version && a.lastID != d.id {
			count.DeadLettered++
			o.letter(r, d, a, "version_conflict")
			return
		}
		count.Duplicate++
		return
	}
	class := d.class
	switch {
	case class != "":
	case d.version > a.version+1:
		class = "version_gap"
	default:
		class = o.apply(a, d)
	}
	switch {
	case class != "":
		count.DeadLettered++
		o.letter(r, d, a, class)
		a.park(r, d, class)
	case o.Ignore[d.kind]:
		count.Ignored++
	default:
		count.Applied++
	}
	o.heal(a)
}

// heal applies what waits and fits.
func (o *Oracle) heal(a *account) {
	for {
		next := a.waiting[a.version+1]
		if next == nil || next.class != "version_gap" {
			return
		}
		if class := o.apply(a, &next.event); class != "" {
			next.class = class
			o.letter(next.record, &next.event, a, class)
			return
		}
		o.Healed++
	}
}

func (o *Oracle) letter(r *Record, d *decoded, a *account, class string) {
	o.Letters = append(o.Letters, Letter{
		Record: r, Class: class, Identified: true,
		Account: d.account, EventID: d.id, Correlation: d.correlation,
		Expected: a.version + 1, Received: d.version,
	})
}

func (o *Oracle) account(id string) *account {
	a := o.accounts[id]
	if a == nil {
		a = newAccount(o.FirstVersion)
		o.accounts[id] = a
	}
	return a
}
