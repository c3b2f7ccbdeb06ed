package appended

import (
	"projector/readmodel"
)

// Newcomers decides whether the entries of a write are assumed to be new and are written by COPY.
// They may be assumed to be new only if all entries of the last write were new. Each writer has its
// own Newcomers. The zero value never uses COPY.
type Newcomers struct {
	copies   bool
	trusted  bool
	distrust int // number of writes that still have to use INSERT
}

// NewcomersTo returns the Newcomers of a partition. A repair has no consumer group and never uses
// COPY.
func NewcomersTo(p readmodel.Partition) Newcomers { return Newcomers{copies: p.Group != ""} }

// Expected reports whether the entries, sorted by key, may be written by COPY.
func (n *Newcomers) Expected(entries []Entry) bool {
	if !n.copies || !n.trusted || len(entries) < readmodel.CopyLeast {
		return false
	}
	for i := range entries[1:] {
		if entries[i].Key == entries[i+1].Key {
			return false
		}
	}
	return true
}

// Copied is called after a COPY, with the error of the COPY. It returns this error.
func (n *Newcomers) Copied(err error) error {
	if err != nil {
		n.trusted, n.distrust = false, distrustFor
	}
	return err
}

// distrustFor is the number of writes without COPY after a COPY has failed.
const distrustFor = 64

// Inserted is called after an INSERT. The parameter fresh is the number of new entries, and all is
// the number of all entries of the write.
func (n *Newcomers) Inserted(fresh, all int) {
	n.distrust = max(0, n.distrust-1)
	n.trusted = fresh == all && n.distrust == 0
}
