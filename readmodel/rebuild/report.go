package rebuild

// Kind is the kind of a difference between a live account or row and the rebuilt one. The names
// are part of the public interface.
type Kind string

// These are the kinds of differences. A swap does not change live accounts or rows with one of the
// last three kinds.
const (
	Different Kind = "different" // a value of the account or row differs
	Missing   Kind = "missing"   // the live tables do not have the account or row
	Unknown   Kind = "unknown"   // the topic has no event for the account or row
	Hold      Kind = "hold"      // the waiting events differ
	Ahead     Kind = "ahead"     // the live version is higher than the topic's
	Corrected Kind = "corrected" // an operator applied a corrected event
	Moved     Kind = "moved"     // an operator has changed the account since the rebuild began
)

// Kinds returns all kinds of differences.
func Kinds() []Kind {
	return []Kind{
		Different, Missing, Unknown, Hold, Ahead, Corrected, Moved,
	}
}

// facts describe a row or an account that differs.
type facts struct {
	live, rebuilt bool // which of the two exist
	repaired      bool // operators have changed the account since the rebuild began
	corrected     bool // operators have applied an event that the topic does not have
	beyond        bool // the topic has the event after the positions, or has lost it
	onlyHold      bool // only the waiting events differ
}

// kind returns the kind of the difference. The first case that matches decides.
func (f facts) kind() Kind {
	switch {
	case f.repaired:
		return Moved
	case f.corrected:
		return Corrected
	case f.beyond:
		return Ahead
	case !f.rebuilt:
		return Unknown
	case !f.live:
		return Missing
	case f.onlyHold:
		return Hold
	default:
		return Different
	}
}

// changes reports whether a swap may replace or remove live accounts and rows with this kind of
// difference.
func (k Kind) changes() bool {
	return k != Ahead && k != Corrected && k != Moved
}

// swapped reports whether a swap replaces or removes an account or row with this kind of difference.
// The kind is empty if nothing differs. The parameter removing is SwapOptions.Remove.
func (k Kind) swapped(removing bool) bool {
	return k != "" && k.changes() && (removing || k != Unknown)
}

// Difference is an account or a row that differs.
type Difference struct {
	ID   string // the account id, or the row's key as text
	Kind Kind
	// Version and Rebuilt are the live and the rebuilt version of an account. They are nil if there
	// is no row.
	Version, Rebuilt *int64
	// Key is the row's key as a JSON object. It is nil for an account.
	Key []byte

	account string // the account to which it belongs; may be empty
}

// Report is the result of a comparison, counted in accounts or in rows.
type Report struct {
	Checked, Matched int64
	Kinds            map[Kind]int64 // number of differences by kind
	Differences      []Difference   // the first differences
	// Markers is the number of markers that the inbox lacks. The events of these markers were
	// counted, and would be counted again when they are redelivered.
	Markers int64
	// Pruned is true if markers were pruned from the inbox. Then Markers grows with each pruning.
	Pruned bool
}

// Different returns the number of differences that a swap would correct. Those of the kind Unknown
// are only corrected with SwapOptions.Remove.
func (r *Report) Different() int64 { return r.count(true) }

// LeftAlone returns the number of differences that a swap does not change.
func (r *Report) LeftAlone() int64 { return r.count(false) }

func (r *Report) count(changes bool) (n int64) {
	for kind, of := range r.Kinds {
		if kind.changes() == changes {
			n += of
		}
	}
	return n
}
