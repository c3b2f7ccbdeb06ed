package event

import (
	"cmp"
	"maps"
)

// Type is what an event says happened to an account.
type Type uint8

// The types that no message names. Ignorable is every type that the operator named in
// --ignore-event-types, and Taken every one that a custom projection reads.
const (
	Unknown Type = iota
	Ignorable
	Taken
)

// meaning is all that distinguishes one type from another.
type meaning struct {
	name         string // in a message, by the contract; empty: no message says so itself
	money        int8   // the amount times this is added to the balance; 0: there is no amount
	dataOptional bool   // the event may come without data, and so without a currency
	status       Status // of the account from then on
}

// meanings says what each type means. It is the only list of them: a new type is one more
// line, and there is no type without one.
var meanings = [...]meaning{
	Unknown:   {},
	Ignorable: {dataOptional: true},
	Taken:     {dataOptional: true},

	{name: "AccountOpened", status: Opened},
	{name: "FundsCredited", money: +1},
	{name: "FundsDebited", money: -1},
	{name: "AccountClosed", dataOptional: true, status: Closed},
}

// Status is what a type makes of an account's status.
type Status uint8

// The statuses.
const (
	Unchanged Status = iota
	Opened
	Closed
)

func (t Type) meaning() *meaning { return &meanings[t] }

// Name is the type's name in a message, by the contract; empty for those that none names.
func (t Type) Name() string { return t.meaning().name }

// MovesMoney reports whether events of the type have an amount.
func (t Type) MovesMoney() bool { return t.meaning().money != 0 }

// Status is what the type makes of an account's status.
func (t Type) Status() Status { return t.meaning().status }

// NamedTypes are the types that messages name, in order.
func NamedTypes() []Type {
	var named []Type
	for t := range Type(len(meanings)) {
		if t.Name() != "" {
			named = append(named, t)
		}
	}
	return named
}

// TypeNamed returns the type that has the name by the contract; Unknown when none has.
func TypeNamed(name string) Type {
	for _, t := range NamedTypes() {
		if t.Name() == name {
			return t
		}
	}
	return Unknown
}

// typeNames maps the name of an event type to what it is.
type typeNames struct {
	known map[string]namedType
	own   map[string]namedType // types of a custom projection, by the contract's names
	rest  Type                 // what all others are
}

type namedType struct {
	name string // interned: an event needs no copy of its own
	kind Type
	// signed: the sign of the amount decides what kind is.
	signed *SignedType
}

// nameOf is a type that the sign of an amount has decided; theirs is the producer's name.
func (t typeNames) nameOf(kind Type, theirs string) namedType {
	if kind == Ignorable {
		return namedType{name: theirs, kind: kind}
	}
	if own, is := t.own[kind.Name()]; is {
		return own
	}
	if t.rest == Ignorable {
		return namedType{name: kind.Name(), kind: Ignorable}
	}
	return namedType{name: kind.Name(), kind: kind}
}

// newTypeNames returns the contract's names, or those a mapping puts in their place,
// with the ignorable ones laid over them: an operator may also choose to ignore a type
// the projection knows.
func newTypeNames(m *Mapping, ignore []string) typeNames {
	names := map[string]namedType{}
	renamed := map[Type]bool{}
	for theirs, kind := range m.Types {
		renamed[kind] = true
		names[theirs] = namedType{name: cmp.Or(kind.Name(), theirs), kind: kind}
	}
	for theirs, signed := range m.Signed {
		for _, kind := range []Type{signed.Positive, signed.Negative, signed.Zero} {
			renamed[kind] = true
		}
		names[theirs] = namedType{name: theirs, signed: &signed}
	}
	for _, kind := range NamedTypes() {
		if _, taken := names[kind.Name()]; !taken && !renamed[kind] {
			names[kind.Name()] = namedType{name: kind.Name(), kind: kind}
		}
	}
	for _, name := range ignore {
		names[name] = namedType{name: name, kind: Ignorable}
	}
	return typeNames{known: names}
}

// ownTypeNames returns the names that a custom projection reads; what a mapping gives
// one of them counts too. All other types only advance a version.
func ownTypeNames(taken []string, m *Mapping, ignore []string) typeNames {
	own := map[string]namedType{}
	for _, name := range taken {
		own[name] = namedType{name: name, kind: Taken}
	}
	names := maps.Clone(own)
	for theirs, kind := range m.Types {
		if named, is := own[kind.Name()]; is {
			names[theirs] = named
		}
	}
	for theirs, signed := range m.Signed {
		delete(names, theirs)
		for _, kind := range []Type{signed.Positive, signed.Negative, signed.Zero} {
			// Where none of them is taken, the type is ignored whatever the amount is.
			if _, is := own[kind.Name()]; is && kind.Name() != "" {
				names[theirs] = namedType{name: theirs, signed: &signed}
			}
		}
	}
	for _, name := range ignore {
		delete(names, name)
	}
	return typeNames{known: names, own: own, rest: Ignorable}
}

// resolve looks up a name; one that is not known has no name of its own.
func (t typeNames) resolve(name []byte) namedType {
	if named, known := t.known[string(name)]; known {
		return named
	}
	return namedType{kind: t.rest}
}
