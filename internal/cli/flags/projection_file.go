package flags

import (
	"cmp"
	"context"
	"strings"

	"projector/internal/cli/exit"
	"projector/projection/file"
	"projector/readmodel"
	"projector/readmodel/own"
)

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
// In this case, no event may be applied with this version.
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
// If the name is empty, choose uses the argument otherwise, which is the default name. It also
// stores the name of the returned projection in *name.
func (f *FileFlags) choose(name *string, otherwise string) (readmodel.Definition, error) {
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
	*name = cmp.Or(*name, otherwise)
	if k := DefinitionNamed(*name); k != nil {
		return k, nil
	}
	return nil, exit.Usagef("--projection (PROJECTION): %q is unknown; use %s, or name the file of a projection of your own with --projection-file (PROJECTION_FILE)",
		*name, strings.Join(projectionNames(), ", "))
}
