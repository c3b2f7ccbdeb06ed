package readmodel

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"projector/sql"
)

// Mapping is how the records of a projection are read.
type Mapping interface {
	// Meaning is what the mapping says as text, the same for two files that say the same.
	Meaning() string
	// ReadsLike reports whether it reads stored events as one with that meaning has read them.
	ReadsLike(meaning string) bool
}

// MappingChangedError says that the rows of a projection were made with a mapping that reads
// their events differently.
type MappingChangedError struct{ Projection string }

// Error implements error and names the remedy.
func (e *MappingChangedError) Error() string {
	return "the rows of " + e.Projection + " were made with another --mapping (EVENT_MAPPING), which reads their events differently: give that one; " +
		"or rebuild the rows with the new one (`projector rebuild --projection=" + e.Projection + " --mapping=FILE --yes`); " +
		"or continue with the new one from here, with `run --accept-changed-mapping`"
}

// SafeText vouches for the text: it holds no data.
func (e *MappingChangedError) SafeText() string { return e.Error() }

// CheckMapping returns a *MappingChangedError when rows of the projection were made with a
// mapping that reads events differently. Nothing is wrong while nothing was processed.
func CheckMapping(ctx context.Context, db Querier, name string, m Mapping) error {
	rows, err := db.Query(ctx, sql.Query("mapping_kept"), name, m.Meaning())
	if err != nil {
		return fmt.Errorf("look for the mapping: %w", err)
	}
	stored, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("look for the mapping: %w", err)
	}
	for _, meaning := range stored {
		if !m.ReadsLike(meaning) {
			return &MappingChangedError{Projection: name}
		}
	}
	return nil
}

// KeepMapping stores with the positions of a projection that its records are read by m. Unless
// that is accepted, it returns what CheckMapping returns.
func KeepMapping(ctx context.Context, db Querier, name string, m Mapping, accept bool) error {
	if !accept {
		if err := CheckMapping(ctx, db, name, m); err != nil {
			return err
		}
	}
	rows, err := db.Query(ctx, sql.Query("mapping_keep"), name, m.Meaning())
	if err == nil {
		rows.Close()
		err = rows.Err()
	}
	if err != nil {
		return fmt.Errorf("store the mapping: %w", err)
	}
	return nil
}
