package cli

import (
	"strings"

	"projector/readmodel"
	"projector/readmodel/statement"
	"projector/readmodel/turnover"
)

// kinds are the projections there are. docs/adding-a-projection.md tells how to add
// one: its package, and its line here.
func kinds() []readmodel.Kind {
	return []readmodel.Kind{
		readmodel.BalanceKind{},
		statement.Kind(),
		turnover.Kind(),
	}
}

// kindNamed finds a projection; nil when there is none of that name.
func kindNamed(name string) readmodel.Kind {
	for _, k := range kinds() {
		if k.Name() == name {
			return k
		}
	}
	return nil
}

// kind is the chosen projection.
func (f *groupFlags) kind() (readmodel.Kind, error) {
	if k := kindNamed(f.Projection); k != nil {
		return k, nil
	}
	return nil, usagef("--projection (PROJECTION): %q is unknown; use %s", f.Projection, strings.Join(projectionNames(), ", "))
}

// projectionNames are the names of the projections.
func projectionNames() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.Name())
	}
	return names
}

// balanceFlags are those of commands that are about accounts, whose state only the
// projection account_balance keeps.
type balanceFlags struct {
	Projection string `env:"PROJECTION" default:"account_balance" only:"account_balance" group:"Projection" help:"Only account_balance knows accounts and gaps (default account_balance)."`
}

func (f *balanceFlags) validate() error {
	if f.Projection != readmodel.BalanceName {
		return usagef("--projection (PROJECTION): this command is about accounts and gaps, which only account_balance has; "+
			"%s has none: use --projection=%s", f.Projection, readmodel.BalanceName)
	}
	return nil
}
