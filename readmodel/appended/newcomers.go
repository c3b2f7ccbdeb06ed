package appended

import (
	"projector/readmodel"
)

// Newcomers reports whether the entries of a write may be assumed to be new, and so be written
// by COPY: where those of the last write all were. It is of one writer. Its zero value
// expects none.
type Newcomers struct {
	copies   bool
	trusted  bool
	distrust int // writes until something is taken to be new again
}

// NewcomersTo returns the newcomers of a partition. Repairs, which are of none, expect none.
func NewcomersTo(p readmodel.Partition) Newcomers { return Newcomers{copies: p.Group != ""} }

// Expected reports whether the entries, which are in the order of their keys, may be
// copied.
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

// Copied takes note of a COPY, whose error it returns.
func (n *Newcomers) Copied(err error) error {
	if err != nil {
		n.trusted, n.distrust = false, distrustFor
	}
	return err
}

// distrustFor is for how many writes nothing is copied after a COPY was refused.
const distrustFor = 64

// Inserted takes note that so many of all entries were new.
func (n *Newcomers) Inserted(fresh, all int) {
	n.distrust = max(0, n.distrust-1)
	n.trusted = fresh == all && n.distrust == 0
}
