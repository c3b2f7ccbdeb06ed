package readmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"projector/projection"
	"projector/sql"
)

// Mapping defines how the records of a projection are decoded.
type Mapping interface {
	// Meaning returns the mapping in a normal form. Two files with the same rules have the same
	// normal form.
	Meaning() string
	// Differs compares this mapping with the mapping that has the given meaning. If the two
	// mappings read the stored events differently, it returns the flags of that mapping and the
	// flags of this mapping. Otherwise both results are empty.
	Differs(meaning string) (stored, now string)
}

// MappingChangedError says that the rows of a projection were made with another mapping, or another
// value of --first-version, which reads their events differently.
type MappingChangedError struct {
	Projection  string
	Stored, Now string // see Mapping.Differs
	Reader      string // see ReaderFlags
}

// Error implements error and names the remedy.
func (e *MappingChangedError) Error() string {
	return "the rows of " + e.Projection + " were made with " + e.Stored + ", which reads their events differently: give that one; " +
		"or rebuild the rows with the new one (`projector rebuild" + cmp.Or(e.Reader, " --projection="+e.Projection) + " " + e.Now + " --yes`); " +
		"or continue with the new one from here, with `run --accept-changed-mapping`"
}

// SafeText implements errclass.Describer: the text contains no data.
func (e *MappingChangedError) SafeText() string { return e.Error() }

// meaning returns the normal form of the partition's mapping. It is empty if there is none.
func (p *Partition) meaning() string {
	if p.Mapping == nil {
		return ""
	}
	return p.Mapping.Meaning()
}

// refuses returns an error if the partition's owner may not use its mapping. Another instance may
// have stored a different mapping since this one started.
func (p *Partition) refuses(ctx context.Context, stored *projection.StoredPosition) *projection.StoppedError {
	if p.Mapping == nil || stored.Mapping == "" {
		return nil
	}
	was, now := p.Mapping.Differs(stored.Mapping)
	if was == "" {
		return nil
	}
	changed := &MappingChangedError{Projection: p.Projection, Stored: was, Now: now, Reader: ReaderFlags(ctx)}
	return &projection.StoppedError{Status: projection.StatusStopped, Reason: changed.Error(), Position: stored.Position}
}

// CheckMapping returns a *MappingChangedError if rows of the projection were made with a mapping
// that reads events differently from m. It returns nil if no event was processed yet.
func CheckMapping(ctx context.Context, db Querier, name string, m Mapping) error {
	_, _, err := otherMappings(ctx, db, name, m)
	return err
}

// otherMappings returns the normal forms of the other mappings that are stored with the
// projection's positions. It also returns whether one of them reads events differently from m. It
// returns a *MappingChangedError if events were processed with such a mapping.
func otherMappings(ctx context.Context, db Querier, name string, m Mapping) (others []string, changed bool, err error) {
	others = []string{}
	var (
		meaning   string
		processed bool
		refused   error
	)
	err = Each(ctx, db, "look for the mapping", sql.Query("mapping_kept"), []any{name, m.Meaning()}, []any{&meaning, &processed}, func() error {
		others = append(others, meaning)
		stored, now := m.Differs(meaning)
		changed = changed || stored != ""
		if stored != "" && processed {
			refused = &MappingChangedError{Projection: name, Stored: stored, Now: now, Reader: ReaderFlags(ctx)}
		}
		return nil
	})
	return others, changed, cmp.Or(err, refused)
}

// KeepMapping stores the mapping m with the positions of a projection. If CheckMapping returns a
// *MappingChangedError and accept is false, KeepMapping returns this error and stores nothing. If m
// reads events differently from a stored mapping, KeepMapping fences the owners of the positions,
// because they may still use the previous mapping.
func KeepMapping(ctx context.Context, db Querier, name string, m Mapping, accept bool) error {
	others, changed, err := otherMappings(ctx, db, name, m)
	if err != nil && (!accept || !errors.As(err, new(*MappingChangedError))) {
		return err
	}
	rows, err := db.Query(ctx, sql.Query("mapping_keep"), name, m.Meaning(), others, changed, accept)
	if err == nil {
		rows.Close()
		err = rows.Err()
	}
	if err != nil {
		return fmt.Errorf("store the mapping: %w", err)
	}
	return nil
}
