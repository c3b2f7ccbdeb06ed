package event

import (
	"cmp"
	"maps"
)

// Type is the type of an event, as the projector handles it.
type Type uint8

// These types have no name in the contract. Ignorable is used for types that only advance the
// version, such as those in --ignore-event-types. Custom is used for the types that a custom
// projection reads.
const (
	Unknown Type = iota
	Ignorable
	Custom
)

// meaning contains the properties of a type.
type meaning struct {
	name         string // name in the contract; empty if the contract has no such type
	money        int8   // factor of the amount for the balance; 0 if there is no amount
	dataOptional bool   // the event may have no data, and therefore no currency
	status       Status // status of the account after the event
}

// meanings lists the types. A new type that adds or subtracts its amount, or that opens or closes
// the account, needs only a line here. daily_turnover counts each type that subtracts as debited.
// Tests fail until TestMeanings, docs/events.md and docs/mapping.schema.json contain the type. No
// test fails if the type is missing in docs/mapping.md, or in the generator and the oracle of
// internal/testbank.
//
// A type with another effect on the balance also changes Event.Signed, Account.applyNext, and the
// packages turnover and statement. A new status also changes Account.Closed, its column in package
// accountdb, and the table account_balance.
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

// Unchanged means that the event does not change the account's status.
const (
	Unchanged Status = iota
	Opened
	Closed
)

func (t Type) meaning() *meaning { return &meanings[t] }

// Name returns the contract's name of the type. Unknown, Ignorable and Custom have no name.
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

// TypeNamed returns the type that has the given name in the contract, or Unknown.
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
	known  map[string]namedType
	custom map[string]namedType // the types of a custom projection, by their names in the contract
	rest   Type                 // the type for all other names
}

type namedType struct {
	name string // the same string for all events of the type
	kind Type
	// signed contains the types for the signs of the amount. If it is set, kind is not used.
	signed *SignedType
}

// nameOf returns the name of a type that was chosen by the sign of the amount. The parameter theirs
// is the producer's name of the type.
func (t typeNames) nameOf(kind Type, theirs string) namedType {
	if kind == Ignorable {
		return namedType{name: theirs, kind: kind}
	}
	if custom, is := t.custom[kind.Name()]; is {
		return custom
	}
	if t.rest == Ignorable {
		return namedType{name: kind.Name(), kind: Ignorable}
	}
	return namedType{name: kind.Name(), kind: kind}
}

// newTypeNames returns the types by the names of the contract, of the mapping and of the parameter
// ignore. If the mapping has other names for a type, the contract's name of the type is not
// accepted. The names in ignore are added last, because an operator may also ignore a known type.
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

// customTypeNames returns the types that a custom projection reads, by their own names and by their
// other names in the mapping. Events of all other types only advance the version.
func customTypeNames(types []string, m *Mapping, ignore []string) typeNames {
	custom := map[string]namedType{}
	for _, name := range types {
		custom[name] = namedType{name: name, kind: Custom}
	}
	names := maps.Clone(custom)
	for theirs, kind := range m.Types {
		if named, is := custom[kind.Name()]; is {
			names[theirs] = named
		}
	}
	for theirs, signed := range m.Signed {
		delete(names, theirs)
		for _, kind := range []Type{signed.Positive, signed.Negative, signed.Zero} {
			// If the projection reads none of the types for the three signs, events with this name
			// are always ignored.
			if _, is := custom[kind.Name()]; is && kind.Name() != "" {
				names[theirs] = namedType{name: theirs, signed: &signed}
			}
		}
	}
	for _, name := range ignore {
		delete(names, name)
	}
	return typeNames{known: names, custom: custom, rest: Ignorable}
}

// resolve returns the type for a name. If the name is unknown, the name in the result is empty.
func (t typeNames) resolve(name []byte) namedType {
	if named, known := t.known[string(name)]; known {
		return named
	}
	return namedType{kind: t.rest}
}
