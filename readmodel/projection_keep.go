package readmodel

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/projection/file"
)

// KeepFile stores the file with which the rows of a projection are made. It returns a
// *FileChangedError if another text is stored. If accept is true or no event was processed yet, the
// new text replaces the stored one instead. If events were processed in another mode, it returns an
// Unfit, because what the projection remembers about events depends on the mode.
func KeepFile(ctx context.Context, db Querier, p *file.Projection, accept bool) error {
	for range keepTries {
		kept, err := All[keptFile](ctx, db, "keep the projection file", "projection_file_keep", p.Name, p.SHA256, string(p.Mode), p.Text, accept)
		if err != nil {
			return err
		}
		if len(kept) > 0 { // otherwise another process stored a file at the same time
			return kept[0].refuse(ctx, p)
		}
	}
	return errors.New("keep the projection file: others are changing it")
}

// CheckFile returns a *FileChangedError if another text of the file is stored, and an
// Unfit if another mode is stored. As long as no record was processed, it returns nil.
func CheckFile(ctx context.Context, db Querier, p *file.Projection) error {
	kept, err := All[keptFile](ctx, db, "look for the projection file", "projection_file_kept", p.Name)
	if err != nil || len(kept) == 0 {
		return err
	}
	return kept[0].refuse(ctx, p)
}

// IsFileStored reports whether a projection file with this SHA-256, in hex, is stored. If so, the
// rows of its projection are made with this file.
func IsFileStored(ctx context.Context, pool *pgxpool.Pool, sha256 string) (stored bool, err error) {
	return One[bool](ctx, pool, "look for the projection file", "projection_file_stored", sha256)
}

// keptFile is the stored description of a file.
type keptFile struct{ SHA256, Mode string }

func (k keptFile) refuse(ctx context.Context, p *file.Projection) error {
	switch {
	case k.Mode != string(p.Mode):
		return Unfit("projection " + p.Name + " was begun with mode: " + k.Mode + ", and what it remembers of events is for that mode: " +
			"give the file of the other mode another name in its line \"-- projection:\", and tables of its own")
	case k.SHA256 != p.SHA256:
		return &FileChangedError{Projection: p.Name, Reader: ReaderFlags(ctx)}
	}
	return nil
}

// keepTries limits the attempts when other processes store the file at the same time.
const keepTries = 3
