package readmodel

// RebuildKind says in what way a live account is not what was rebuilt. Its names are
// public surface.
type RebuildKind string

// The kinds of differences. Of the last three the live account is left alone.
const (
	RebuildDifferent RebuildKind = "different" // its balance, version or state
	RebuildMissing   RebuildKind = "missing"   // the live tables lack it
	RebuildUnknown   RebuildKind = "unknown"   // the topic has no event of it
	RebuildHold      RebuildKind = "hold"      // what waits behind its hole
	RebuildAhead     RebuildKind = "ahead"     // it is beyond what the topic gives
	RebuildCorrected RebuildKind = "corrected" // somebody has applied a corrected event
	RebuildMoved     RebuildKind = "moved"     // it was written by others since it was compared
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

// RebuildDifference is one account that differs. A nil version: there is no row.
type RebuildDifference struct {
	AccountID        string
	Kind             RebuildKind
	Version, Rebuilt *int64
}

// RebuildReport is what a comparison has found.
type RebuildReport struct {
	Checked, Matched int64
	Kinds            map[RebuildKind]int64 // of those that do not match
	Differences      []RebuildDifference   // the first of them
}

// Different is how many accounts are not right, of those that are not left alone.
func (r *RebuildReport) Different() int64 { return r.count(true) }

// LeftAlone is how many accounts differ and are not touched.
func (r *RebuildReport) LeftAlone() int64 { return r.count(false) }

func (r *RebuildReport) count(changes bool) (n int64) {
	for kind, of := range r.Kinds {
		if kind.changes() == changes {
			n += of
		}
	}
	return n
}

// become takes accounts for another kind than they were taken for.
func (r *RebuildReport) become(kind RebuildKind, was map[string]RebuildKind) {
	for _, k := range was {
		r.Kinds[k]--
		r.Kinds[kind]++
	}
	for i := range r.Differences {
		if d := &r.Differences[i]; was[d.AccountID] != "" {
			d.Kind = kind
		}
	}
}
