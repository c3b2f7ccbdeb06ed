package event

import "cmp"

// The names of the event types, as they stand in a message.
const (
	nameAccountOpened = "AccountOpened"
	nameFundsCredited = "FundsCredited"
	nameFundsDebited  = "FundsDebited"
	nameAccountClosed = "AccountClosed"
)

// typeNames maps the name of an event type to what it is.
type typeNames map[string]namedType

type namedType struct {
	name string // interned: an event needs no copy of its own
	kind Type
}

// newTypeNames returns the contract's names, or those a mapping puts in their place,
// with the ignorable ones laid over them: an operator may also choose to ignore a type
// the projection knows.
func newTypeNames(mapped map[string]Type, ignore []string) typeNames {
	contract := map[Type]string{
		AccountOpened: nameAccountOpened, FundsCredited: nameFundsCredited,
		FundsDebited: nameFundsDebited, AccountClosed: nameAccountClosed,
	}
	names := typeNames{}
	renamed := map[Type]bool{}
	for theirs, kind := range mapped {
		renamed[kind] = true
		names[theirs] = namedType{cmp.Or(contract[kind], theirs), kind}
	}
	for kind, name := range contract {
		if _, taken := names[name]; !taken && !renamed[kind] {
			names[name] = namedType{name, kind}
		}
	}
	for _, name := range ignore {
		names[name] = namedType{name, Ignorable}
	}
	return names
}

// resolve looks up a name; the answer is {"", Unknown} when there is none.
func (t typeNames) resolve(name []byte) namedType { return t[string(name)] }
