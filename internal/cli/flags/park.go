package flags

import (
	"projector/internal/cli/exit"
)

// ParkFlags limit the parked events of each account.
type ParkFlags struct {
	ParkLimit int64 `env:"PARK_LIMIT" default:"10000" placeholder:"N" group:"Projection" help:"Events per account stored in the database for a gap (default 10000). Those beyond are read again when it is their turn."`
	ParkBytes Size  `env:"PARK_BYTES" default:"64MiB" placeholder:"SIZE" group:"Projection" help:"Size of the events per account stored in the database for a gap: keys, values and headers (default 64MiB)."`
}

// CheckPark refuses invalid limits.
func (f *ParkFlags) CheckPark() error {
	switch {
	case f.ParkLimit < 0:
		return exit.Usagef("--park-limit (PARK_LIMIT): must not be negative")
	case f.ParkBytes <= 0:
		return exit.Usagef("--park-bytes (PARK_BYTES): must be more than 0; --park-limit=0 parks nothing but the event that makes the gap")
	}
	return nil
}
