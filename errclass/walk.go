package errclass

// finding is what one node of an error tree says.
type finding struct {
	class  Class
	reason string
	// vague: another finding of the same class tells more.
	vague bool
}

// judge decides about one node of an error tree, without looking below it. ok
// is false when the node says nothing and its children are to be asked.
type judge func(node error) (f finding, ok bool)

// undecided is the finding for a tree in which no node says anything.
var undecided = finding{class: Unknown, reason: "unknown"}

// worst walks the tree of err from the outside in and returns the finding of
// the highest class, among equals the first that is not vague.
func worst(err error, judges ...judge) finding {
	if f, ok := search(err, judges); ok {
		return f
	}
	return undecided
}

func search(node error, judges []judge) (best finding, found bool) {
	if node == nil {
		return finding{}, false
	}
	for _, j := range judges {
		if f, ok := j(node); ok {
			return f, true
		}
	}
	for _, child := range children(node) {
		f, ok := search(child, judges)
		if ok && (!found || f.outranks(best)) {
			best, found = f, true
		}
	}
	return best, found
}

func (f finding) outranks(best finding) bool {
	return f.class > best.class || (f.class == best.class && best.vague)
}

// children returns the errors that node wraps.
func children(node error) []error {
	switch w := node.(type) { //nolint:errorlint // one node is meant, not its chain
	case interface{ Unwrap() error }:
		if child := w.Unwrap(); child != nil {
			return []error{child}
		}
	case interface{ Unwrap() []error }:
		return w.Unwrap()
	}
	return nil
}
