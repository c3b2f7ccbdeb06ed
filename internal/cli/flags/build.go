package flags

import "runtime/debug"

// BuildInfo is set by `make build` and `make release` at link time.
type BuildInfo struct {
	Version string
	Commit  string // the full id; empty: not set
}

// From returns the commit that the program was built from: Commit, or else the one that Go has
// recorded. It is empty if neither is known.
func (i BuildInfo) From() string {
	if i.Commit != "" {
		return i.Commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return ""
}
