package projection

import (
	"fmt"
	"math"

	"projector/projection/event"
)

// BreakerRule defines how many dead letters open the breaker.
type BreakerRule struct {
	Window int     // number of latest records that count; at most MaxBreakerWindow
	Share  float64 // share of root dead letters that opens the breaker; 0 means never
	// Registry means that the event format reads its schemas from a schema registry.
	Registry bool
	// Reader has the flags that name the topic, the projection and the group in a command, each
	// after a space. Letters has the flag for the DLQ topic. Defaults are left out.
	Reader, Letters string
}

// MaxBreakerWindow is the largest number of records in a window. It limits the size of the
// position's row.
const MaxBreakerWindow = 100_000

// roots returns how many root dead letters in a full window open the breaker.
func (r BreakerRule) roots() int {
	const rounding = 1e-9 // needed so that 0.07 of 100 gives 7
	return max(1, int(math.Ceil(r.Share*float64(r.Window)-rounding)))
}

// BreakerState is the part of a breaker that the position's row stores.
type BreakerState struct {
	Window  string // the latest records, encoded; empty if there are none
	Through int64  // records below this offset do not count
	Reason  string // why the breaker is open; empty if it is not open
}

// Breaker stops a partition when too many of its latest records are dead letters. So many dead
// letters usually have one cause, such as a wrong deployment. The breaker counts the records of one
// partition. It begins with the window that is stored with the position. A root dead letter is any
// dead letter except a version_gap of an account that was already waiting for a missing event. A
// version_gap of such an account does not count, and neither do duplicates and tombstones. Some
// projections detect a duplicate only when they write it. The breaker has then already counted the
// duplicate as an applied record.
//
// Records that are read again, after a restart or because the position was set back, do not count.
// They were already counted the first time. Most of them are duplicates now, which do not count. If
// the few dead letters among them counted, these would be most of the counted records and would
// open the breaker.
//
// A nil *Breaker counts nothing and never opens.
type Breaker struct {
	rule      BreakerRule
	partition int32
	through   int64
	at        int64 // the offset of the last record
	partly    bool  // more entries of the last record follow
	window    window
	durable   window // if partly: the window without the root dead letters that are read again with the last record
	reason    string
}

// NewBreaker returns the breaker of a partition that was claimed. It returns nil if the rule turns
// the breaker off.
func NewBreaker(rule BreakerRule, partition int32, pos *Position) *Breaker {
	if rule.Share <= 0 || rule.Window <= 0 {
		return nil
	}
	return &Breaker{
		rule: rule, partition: partition, through: pos.Breaker.Through, at: pos.Next,
		window: decodeWindow(pos.Breaker.Window, rule.Window),
	}
}

// Open reports whether the breaker is open. No further record may then be processed. If an entry of
// a record causes the breaker to open, the other entries of the record are processed first, even if
// they become dead letters. The position passes only whole records. If the breaker opened within a
// record, the partition would stop at the same record again after each resume.
func (b *Breaker) Open() bool { return b != nil && b.reason != "" && !b.partly }

// State returns the state to store in the position's row. The parameter stored is the state in the
// row now.
func (b *Breaker) State(stored BreakerState) BreakerState {
	if b == nil {
		return BreakerState{Through: stored.Through}
	}
	w := &b.window
	if b.partly {
		// The position does not pass the record. If the record is read again, its dead letters come
		// again, and its other entries are duplicates, which do not count.
		w = &b.durable
	}
	state := BreakerState{Window: w.encode(), Through: b.through}
	if b.Open() {
		state.Reason = b.reason
	}
	return state
}

// Passed counts a record that was not dead-lettered.
func (b *Breaker) Passed(r *DecodedRecord, outcome Outcome) {
	if b == nil {
		return
	}
	b.entry(r)
	if r.Decoded.Tombstone {
		return
	}
	b.at = r.Record.Offset
	if !r.Reprocessed && outcome != Duplicate && b.at >= b.through {
		b.window.addOthers(1)
		if b.partly {
			b.durable.addOthers(1)
		}
	}
}

// DeadLettered counts a dead letter. The parameter waits is true if its account was already waiting
// for a missing event.
func (b *Breaker) DeadLettered(r *DecodedRecord, decision Decision, waits bool) {
	if b == nil {
		return
	}
	b.entry(r)
	b.at = r.Record.Offset
	if !r.Reprocessed && (decision.Class != event.VersionGap || !waits) {
		b.root(decision)
	}
}

// entry is called before an entry of a record is counted.
func (b *Breaker) entry(r *DecodedRecord) {
	if r.More && !b.partly {
		b.durable.set(&b.window)
	}
	b.partly = r.More
}

// HealFailed counts a parked event that has the account's next version but cannot be applied. The
// parameter parked is its record.
func (b *Breaker) HealFailed(parked *Record, decision Decision) {
	if b == nil {
		return
	}
	b.root(decision)
	// An event of the record at b.at is read again with this record, and counts then.
	if b.partly && b.at >= b.through && (parked.Partition != b.partition || parked.Offset != b.at) {
		b.durable.root(decision.Class)
	}
}

// root counts a root dead letter. It opens the breaker if the window is full and now contains too
// many root dead letters.
func (b *Breaker) root(decision Decision) {
	if b.at < b.through {
		return
	}
	b.window.root(decision.Class)
	if b.window.full() && b.window.roots >= b.rule.roots() && b.reason == "" {
		b.reason = b.explain(decision)
	}
}

// explain returns the text that says why the breaker is open and what to do.
func (b *Breaker) explain(last Decision) string {
	w := &b.window
	class, n := w.most()
	example := ""
	if last.Class == class && last.Message != "" {
		example = " (" + last.Message + ")"
	}
	return fmt.Sprintf("the breaker is open: %d of the last %d records are dead letters (share %.2g, --breaker-share is %g), "+
		"%d of them %s%s. %s, then type: projector resume --partition=%d%s --reason=TEXT --yes. See the runbook, \"breaker open\"",
		w.roots, len(w.slots), float64(w.roots)/float64(len(w.slots)), b.rule.Share, n, class, example, b.rule.remedy(class, last), b.partition, b.rule.Reader)
}

// remedy returns what to do if the given class is the most frequent class of root dead letters. The
// parameter last is the decision about the newest root dead letter.
func (r BreakerRule) remedy(class event.Class, last Decision) string {
	const byProducer = "The producers write amounts in this form: have them corrected, or declare the form in --mapping. Follow docs/repairs.md, \"Very many dead letters\" (if more of them follow, type --through=END as well)"
	replay := fmt.Sprintf(", type: projector dlq replay --class=%s%s%s --yes", class, r.Reader, r.Letters)
	switch class {
	case event.MalformedPayload:
		switch {
		case last.Class == class && last.ByProducer:
			return byProducer
		case r.Registry:
			return "Are --topic and --format those of the producers, and does the schema registry have its schemas? Correct the settings" + replay
		default:
			return "Are --topic, --format and --mapping those of the producers? Correct the settings" + replay
		}
	case event.UnknownEventType:
		return "Name the types in --mapping or --ignore-event-types" + replay
	case event.UnsupportedCurrency:
		return "Name the currencies in --currencies" + replay
	case event.InvalidAmount:
		return byProducer
	case event.VersionGap:
		return "Events before these are missing: has the topic lost records? Bring them in (if they come after these, type --through=END as well)"
	case event.VersionConflict, event.CurrencyMismatch, event.BalanceOverflow:
		return "Is it the topic that the read model comes from? Have the producers looked at"
	case event.RejectedByDatabase:
		return "Change the table so that it accepts the rows" + replay
	}
	return "Look at what the producers send"
}
