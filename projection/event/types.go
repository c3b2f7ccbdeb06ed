package event

import (
	"cmp"
	"maps"
)

// Type is what happened to an account.
type Type uint8

// The types without a name. Ignorable is all of the types in --ignore-event-types, and Custom all
// of those that a custom projection reads.
const (
	Unknown Type = iota
	Ignorable
	Custom
)

// meaning has the properties of a type.
type meaning struct {
	name         string // in a message, by the contract; empty: no message has this type
	money        int8   // the amount is multiplied by this and added to the balance; 0: there is no amount
	dataOptional bool   // the event may have no data, and so no currency
	status       Status // of the account afterwards
}

// meanings is the only list of types. A new type is a new line.
var meanings = [...]meaning{
	Unknown:   {},
	Ignorable: {dataOptional: true},
	Custom:    {dataOptional: true},

	{name: "AccountOpened", status: Opened},
	{name: "FundsCredited", money: +1},
	{name: "FundsDebited", money: -1},
	{name: "AccountClosed", dataOptional: true, status: Closed},
}

// Status is an account's status after an event.
type Status uint8

// The statuses.
const (
	Unchanged Status = iota
	Opened
	Closed
)

func (t Type) meaning() *meaning { return &meanings[t] }

// Name returns the type's name in a message, by the contract. Unknown, Ignorable and Custom have none.
func (t Type) Name() string { return t.meaning().name }

// MovesMoney reports whether events of the type have an amount.
func (t Type) MovesMoney() bool { return t.meaning().money != 0 }

// Status returns the account's status after an event of the type.
func (t Type) Status() Status { return t.meaning().status }

// NamedTypes returns the types with a name, in order.
func NamedTypes() []Type {
	var named []Type
	for t := range Type(len(meanings)) {
		if t.Name() != "" {
			named = append(named, t)
		}
	}
	return named
}

// TypeNamed returns the type with that name in the contract, or Unknown.
func TypeNamed(name string) Type {
	for _, t := range NamedTypes() {
		if t.Name() == name {
			return t
		}
	}
	return Unknown
}

// typeNames maps names in messages to types.
type typeNames struct {
	known map[string]namedType
	own   map[string]namedType // types of a custom projection, by the contract's names
	rest  Type                 // of all other names
}

type namedType struct {
	name string // shared by all events of the type
	kind Type
	// signed has the types for the signs of the amount. kind is not used then.
	signed *SignedType
}

// nameOf returns the name of a type that depended on a sign. theirs is the producer's name.
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

// newTypeNames returns the contract's names, or the mapping's instead. Ignored names are added last,
// because an operator may also ignore a known type.
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

// ownTypeNames returns the names that a custom projection reads, and other names that a mapping has
// for them. All other types only advance a version.
func ownTypeNames(taken []string, m *Mapping, ignore []string) typeNames {
	own := map[string]namedType{}
	for _, name := range taken {
		own[name] = namedType{name: name, kind: Custom}
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
			// If the projection reads none of the three, the type is ignored whatever the amount is.
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

// resolve returns the type of a name. An unknown name has an empty name in the result.
func (t typeNames) resolve(name []byte) namedType {
	if named, known := t.known[string(name)]; known {
		return named
	}
	return namedType{kind: t.rest}
}
