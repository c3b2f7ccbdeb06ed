package rebuild

// Kind says in what way a live account, or row, is not what was rebuilt. Its names
// are public surface.
type Kind string

// The kinds of differences. Of the last three the live account is left alone.
const (
	Different Kind = "different" // its balance, version or state
	Missing   Kind = "missing"   // the live tables lack it
	Unknown   Kind = "unknown"   // the topic has no event of it
	Hold      Kind = "hold"      // what waits for the missing version
	Ahead     Kind = "ahead"     // it is beyond what the topic gives
	Corrected Kind = "corrected" // a person has applied a corrected event
	Moved     Kind = "moved"     // people have repaired it since the rebuild began
)

// Kinds lists all kinds.
func Kinds() []Kind {
	return []Kind{
		Different, Missing, Unknown, Hold, Ahead, Corrected, Moved,
	}
}

// facts are what is known of a row, or an account, that differs.
type facts struct {
	live, rebuilt bool // which of the two there is
	repaired      bool // people have changed it since the rebuild began
	corrected     bool // people have applied what the topic does not give
	beyond        bool // the topic gives it beyond the positions, or not any more
	onlyHold      bool // only what waits for a version differs
}

// kind decides in what way it differs.
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

// changes reports whether the live account is to be replaced or removed.
func (k Kind) changes() bool {
	return k != Ahead && k != Corrected && k != Moved
}

// Difference is one account, or one row, that differs.
type Difference struct {
	ID   string // the account, or the row's key as text
	Kind Kind
	// Of an account; nil: there is no row.
	Version, Rebuilt *int64
	// Key is the row's key as a JSON object; nil: it is an account.
	Key []byte
}

// Report is what a comparison has found, in accounts or in rows.
type Report struct {
	Checked, Matched int64
	Kinds            map[Kind]int64 // of those that do not match
	Differences      []Difference   // the first of them
	// Markers are missing in the inbox: events that are counted and would be counted again.
	Markers int64
}

// Different is how many are not right, of those that are not left alone.
func (r *Report) Different() int64 { return r.count(true) }

// LeftAlone is how many differ and are not touched.
func (r *Report) LeftAlone() int64 { return r.count(false) }

func (r *Report) count(changes bool) (n int64) {
	for kind, of := range r.Kinds {
		if kind.changes() == changes {
			n += of
		}
	}
	return n
}

// recount counts accounts or rows as another kind than before.
func (r *Report) recount(kind Kind, was map[string]Kind) {
	for _, k := range was {
		r.Kinds[k]--
		r.Kinds[kind]++
	}
	for i := range r.Differences {
		if d := &r.Differences[i]; was[d.ID] != "" {
			d.Kind = kind
		}
	}
}
