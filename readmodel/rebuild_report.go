package readmodel

// RebuildKind says in what way a live account, or row, is not what was rebuilt. Its names
// are public surface.
type RebuildKind string

// The kinds of differences. Of the last three the live account is left alone.
const (
	RebuildDifferent RebuildKind = "different" // its balance, version or state
	RebuildMissing   RebuildKind = "missing"   // the live tables lack it
	RebuildUnknown   RebuildKind = "unknown"   // the topic has no event of it
	RebuildHold      RebuildKind = "hold"      // what waits behind its hole
	RebuildAhead     RebuildKind = "ahead"     // it is beyond what the topic gives
	RebuildCorrected RebuildKind = "corrected" // somebody has applied a corrected event
	RebuildMoved     RebuildKind = "moved"     // people have repaired it since the rebuild began
)

// RebuildKinds lists all kinds.
func RebuildKinds() []RebuildKind {
	return []RebuildKind{
		RebuildDifferent, RebuildMissing, RebuildUnknown, RebuildHold, RebuildAhead, RebuildCorrected, RebuildMoved,
	}
}

// changes reports whether the live account is to be replaced or removed.
func (k RebuildKind) changes() bool {
	return k != RebuildAhead && k != RebuildCorrected && k != RebuildMoved
}

// RebuildDifference is one account, or one row, that differs.
type RebuildDifference struct {
	ID   string // the account, or the row's key as text
	Kind RebuildKind
	// Of an account; nil: there is no row.
	Version, Rebuilt *int64
	// Key is the row's key as a JSON object; nil: it is an account.
	Key []byte
}

// RebuildReport is what a comparison has found, in accounts or in rows.
type RebuildReport struct {
	Checked, Matched int64
	Kinds            map[RebuildKind]int64 // of those that do not match
	Differences      []RebuildDifference   // the first of them
	// Markers are missing in the inbox: events that are counted and would be counted again.
	Markers int64
}

// Different is how many are not right, of those that are not left alone.
func (r *RebuildReport) Different() int64 { return r.count(true) }

// LeftAlone is how many differ and are not touched.
func (r *RebuildReport) LeftAlone() int64 { return r.count(false) }

func (r *RebuildReport) count(changes bool) (n int64) {
	for kind, of := range r.Kinds {
		if kind.changes() == changes {
			n += of
		}
	}
	return n
}

// become takes accounts or rows for another kind than they were taken for.
func (r *RebuildReport) become(kind RebuildKind, was map[string]RebuildKind) {
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
