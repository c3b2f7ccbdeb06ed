package flags

import (
	"cmp"
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/cli/exit"
	"projector/projection/file"
	"projector/readmodel"
	"projector/readmodel/balance"
	"projector/readmodel/own"
	"projector/readmodel/statement"
	"projector/readmodel/turnover"
)

// Definitions returns all built-in projections. A new projection needs a package and a line here,
// see docs/adding-a-projection.md.
func Definitions() []readmodel.Definition {
	return []readmodel.Definition{
		balance.Definition{},
		statement.Definition(),
		turnover.Definition(),
	}
}

// DefinitionNamed returns the projection with this name, or nil.
func DefinitionNamed(name string) readmodel.Definition {
	for _, k := range Definitions() {
		if k.Name() == name {
			return k
		}
	}
	return nil
}

// GroupFlags select a projection and its consumer group.
type GroupFlags struct {
	// The methods Kind and Check set Projection to the name of the chosen projection.
	Projection string `env:"PROJECTION" placeholder:"NAME" group:"Projection" help:"What to project (default account_balance)."`
	FileFlags
	Group string `env:"KAFKA_GROUP" placeholder:"NAME" group:"Projection" help:"Consumer group; default the projection's name followed by -projector."`

	byDefault bool // no projection was given, and Kind has set Projection to the default
}

// Kind returns the chosen projection.
func (f *GroupFlags) Kind() (readmodel.Definition, error) {
	f.byDefault = f.byDefault || f.Projection == "" && !f.ProjectionFile.Given()
	return f.choose(&f.Projection)
}

func projectionNames() []string {
	var names []string
	for _, k := range Definitions() {
		names = append(names, k.Name())
	}
	return names
}

// BalanceFlags are the flags of commands about accounts. Only account_balance and ordered custom
// projections have a state for each account.
type BalanceFlags struct {
	// The methods Kind and Check set Projection to the name of the chosen projection.
	Projection string `env:"PROJECTION" placeholder:"NAME" only:"account_balance" group:"Projection" help:"Only account_balance knows accounts and gaps, and a --projection-file whose mode is ordered (default account_balance)."`
	FileFlags
}

// Kind returns the chosen projection. It refuses a projection that has no state for each account.
func (f *BalanceFlags) Kind() (readmodel.Definition, error) {
	kind, err := f.choose(&f.Projection)
	if err == nil && !kind.Accounts() {
		err = exit.Usagef("--projection (PROJECTION): this command is about accounts and gaps, which only account_balance has, and a "+
			"projection file whose mode is ordered; %s has none: use --projection=%s", kind.Name(), readmodel.BalanceName)
	}
	return kind, err
}

// Check refuses an unknown projection, and a projection that has no state for each account.
func (f *BalanceFlags) Check() error {
	_, err := f.Kind()
	return err
}

// CheckBalance refuses all projections except account_balance.
func (f *BalanceFlags) CheckBalance() error {
	kind, err := f.Kind()
	if err == nil && kind.Name() != readmodel.BalanceName {
		err = exit.Usagef("--projection-file (PROJECTION_FILE): this command is about %s; leave it out", readmodel.BalanceName)
	}
	return err
}

// StatementFlags are the flags of the command that shows a statement.
type StatementFlags struct {
	Projection string `env:"PROJECTION" default:"account_statement" only:"account_statement" group:"Projection" help:"Only account_statement has statements; account_balance, which it is compared with, is accepted too (default account_statement)."`
}

// Check refuses all projections except account_statement and account_balance.
func (f *StatementFlags) Check() error {
	if f.Projection != statement.Name && f.Projection != readmodel.BalanceName {
		return exit.Usagef("--projection (PROJECTION): this command is about statements, which only account_statement has; "+
			"%s has none: use --projection=%s", f.Projection, statement.Name)
	}
	return nil
}

// ProjectionChoices has the possible values of flags, by the flag's name.
var ProjectionChoices = map[string][]string{"projection": projectionNames()}

// GroupName returns the consumer group of the chosen projection.
func (f *GroupFlags) GroupName() string {
	name := cmp.Or(f.Projection, readmodel.BalanceName)
	return cmp.Or(f.Group, strings.ReplaceAll(name, "_", "-")+"-projector")
}

// Check refuses an unknown projection.
func (f *GroupFlags) Check() error {
	_, err := f.Kind()
	return err
}

// CheckGroup refuses a group that belongs to another projection than the given one. Otherwise, a
// command would show the positions of the other projection, or no dead letters. The group may be in
// the environment, as in a container of the other projection. A group alone is not refused, because
// its positions can be shown without naming its projection.
func (f *GroupFlags) CheckGroup(ctx context.Context, pool *pgxpool.Pool) error {
	if f.Group == "" || f.byDefault {
		return nil
	}
	wanted := cmp.Or(f.Projection, readmodel.BalanceName)
	other, err := readmodel.OtherProjection(ctx, pool, f.Group, wanted)
	if err != nil || other == "" {
		return err
	}
	return exit.Refusef("consumer group %q (--group, KAFKA_GROUP) belongs to projection %s, and this command is for %s: "+
		"name the projection of the group (--projection, --projection-file), or the group of %s", f.Group, other, wanted, wanted)
}

// FileFlags name the file of a custom projection.
type FileFlags struct {
	ProjectionFile File `env:"PROJECTION_FILE" placeholder:"FILE" group:"Projection" help:"SQL file of a projection of your own, which it names; see docs/own-projection.md."`

	own *file.Projection
}

// CustomProjection returns the custom projection in the file, or nil without a file.
func (f *FileFlags) CustomProjection() (*file.Projection, error) {
	if !f.ProjectionFile.Given() || f.own != nil {
		return f.own, nil
	}
	p, err := ReadProjectionFile("--projection-file (PROJECTION_FILE): ", f.ProjectionFile)
	if err == nil {
		f.own = &p
	}
	return f.own, err
}

// CustomTypes returns the event types that the custom projection reads. It returns none without a
// file.
func (f *FileFlags) CustomTypes() ([]string, error) {
	p, err := f.CustomProjection()
	if p == nil {
		return nil, err
	}
	return p.Types, nil
}

// CheckFile returns an error if another version of the file has written the rows of the projection.
// The command must then apply no event.
func (f *FileFlags) CheckFile(ctx context.Context, db readmodel.Querier) error {
	p, err := f.CustomProjection()
	if p == nil {
		return err
	}
	return readmodel.CheckFile(ctx, db, p)
}

// ReadProjectionFile reads a projection file. Mistakes are returned as a UsageError that begins
// with the argument named.
func ReadProjectionFile(named string, from File) (file.Projection, error) {
	text, err := from.Read()
	if err != nil {
		return file.Projection{}, exit.Usagef("%s%w", cmp.Or(named, "<file>: "), err)
	}
	p, err := file.Parse(from.String(), text)
	if err != nil {
		return p, exit.Mistakes(named, err)
	}
	return p, nil
}

// choose returns the projection in the file or, without a file, the projection with the given name.
// Without a name it is account_balance. choose stores the name of the returned projection in *name.
func (f *FileFlags) choose(name *string) (readmodel.Definition, error) {
	p, err := f.CustomProjection()
	if err != nil {
		return nil, err
	}
	if p != nil {
		if *name != "" && *name != p.Name {
			return nil, exit.Usagef("--projection (PROJECTION): is %s, and --projection-file (PROJECTION_FILE) is of %s: leave out one of the two", *name, p.Name)
		}
		*name = p.Name
		return own.Definition(*p), nil
	}
	*name = cmp.Or(*name, readmodel.BalanceName)
	if k := DefinitionNamed(*name); k != nil {
		return k, nil
	}
	return nil, exit.Usagef("--projection (PROJECTION): %q is unknown; use %s, or name the file of a projection of your own with --projection-file (PROJECTION_FILE)",
		*name, strings.Join(projectionNames(), ", "))
}
