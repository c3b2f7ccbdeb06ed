package event

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

// newTypeNames returns the known types with the ignorable ones laid over them: an
// operator may also choose to ignore a type the projection knows.
func newTypeNames(ignore []string) typeNames {
	names := typeNames{
		nameAccountOpened: {nameAccountOpened, AccountOpened},
		nameFundsCredited: {nameFundsCredited, FundsCredited},
		nameFundsDebited:  {nameFundsDebited, FundsDebited},
		nameAccountClosed: {nameAccountClosed, AccountClosed},
	}
	for _, name := range ignore {
		names[name] = namedType{name, Ignorable}
	}
	return names
}

// resolve looks up a name; the answer is {"", Unknown} when there is none.
func (t typeNames) resolve(name []byte) namedType { return t[string(name)] }
