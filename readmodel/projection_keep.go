package readmodel

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection/file"
	"projector/sql"
)

// KeepFile keeps the file that the rows of a projection come from, when none is kept. Another
// text than the one that is kept is a *FileChangedError, unless it is accepted or nothing was
// processed yet: then it takes its place. A projection's mode does not change, since what it
// remembers of events is of that kind: *ModeChangedError.
func KeepFile(ctx context.Context, db Querier, p *file.Projection, accept bool) error {
	for range keepTries {
		rows, err := db.Query(ctx, sql.Query("projection_file_keep"), p.Name, p.SHA256, string(p.Mode), p.Text, accept)
		if err != nil {
			return fmt.Errorf("keep the projection file: %w", err)
		}
		kept, err := pgx.CollectRows(rows, pgx.RowToStructByPos[keptFile])
		if err != nil {
			return fmt.Errorf("keep the projection file: %w", err)
		}
		if len(kept) > 0 { // else another has kept one at this moment
			return kept[0].refuse(p)
		}
	}
	return errors.New("keep the projection file: others are changing it")
}

// CheckFile is a *FileChangedError when another text of the file is kept, and a
// *ModeChangedError when another mode is. Nothing is wrong while nothing was processed.
func CheckFile(ctx context.Context, db Querier, p *file.Projection) error {
	rows, err := db.Query(ctx, sql.Query("projection_file_kept"), p.Name)
	if err != nil {
		return fmt.Errorf("look for the projection file: %w", err)
	}
	var kept []keptFile
	if kept, err = pgx.CollectRows(rows, pgx.RowToStructByPos[keptFile]); err != nil || len(kept) == 0 {
		return err
	}
	return kept[0].refuse(p)
}

// IsFileStored reports whether a projection file with this SHA-256, in hex, is stored: the
// projection was run from it.
func IsFileStored(ctx context.Context, pool *pgxpool.Pool, sha256 string) (stored bool, err error) {
	if err := pool.QueryRow(ctx, sql.Query("projection_file_stored"), sha256).Scan(&stored); err != nil {
		return false, fmt.Errorf("look for the projection file: %w", err)
	}
	return stored, nil
}

// keptFile is what is kept of a file.
type keptFile struct{ SHA256, Mode string }

func (k keptFile) refuse(p *file.Projection) error {
	switch {
	case k.Mode != string(p.Mode):
		return &ModeChangedError{Projection: p.Name, Mode: k.Mode}
	case k.SHA256 != p.SHA256:
		return &FileChangedError{Projection: p.Name}
	}
	return nil
}

// keepTries is how often it is looked again for what another has kept.
const keepTries = 3

// ModeChangedError says that a projection has been run in another mode.
type ModeChangedError struct{ Projection, Mode string }

// Error implements error and names the remedy.
func (e *ModeChangedError) Error() string {
	return "projection " + e.Projection + " was begun with mode: " + e.Mode + ", and what it remembers of events is for that mode: " +
		"give the file of the other mode another name in its line \"-- projection:\", and tables of its own"
}

// SafeText implements errclass.Describer.
func (e *ModeChangedError) SafeText() string { return e.Error() }
