package rebuild

// Kind is the kind of a difference between a live account or row and the rebuilt one. The names
// are part of the public interface.
type Kind string

// The kinds of differences. With the last three, the live account is not changed.
const (
	Different Kind = "different" // the balance, version or status differs
	Missing   Kind = "missing"   // the live tables do not have it
	Unknown   Kind = "unknown"   // the topic has no event for it
	Hold      Kind = "hold"      // the waiting events differ
	Ahead     Kind = "ahead"     // its version is higher than the topic's
	Corrected Kind = "corrected" // a person applied a corrected event
	Moved     Kind = "moved"     // a person has changed it since the rebuild began
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{
		Different, Missing, Unknown, Hold, Ahead, Corrected, Moved,
	}
}

// facts describe a row or an account that differs.
type facts struct {
	live, rebuilt bool // which of the two exist
	repaired      bool // people have changed it since the rebuild began
	corrected     bool // people have applied an event that the topic does not have
	beyond        bool // the topic has its event after the positions, or has lost it
	onlyHold      bool // only the waiting events differ
}

// kind returns the kind of the difference.
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

// changes reports whether a swap replaces or removes the live account.
func (k Kind) changes() bool {
	return k != Ahead && k != Corrected && k != Moved
}

// Difference is an account or a row that differs.
type Difference struct {
	ID   string // the account id, or the row's key as text
	Kind Kind
	// Versions of an account; nil if there is no row.
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
	// Markers is the number of markers that the inbox lacks. Their events were counted, and would be
	// counted again when redelivered.
	Markers int64
}

// Different returns the number of differences that a swap would correct.
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
