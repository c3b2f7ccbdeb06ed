package flags

import "runtime/debug"

// BuildInfo is set by `make build` and `make release` at link time.
type BuildInfo struct {
	Version string
	Commit  string // the full id; empty: not set
}

// From returns the commit that the program was built from. If Commit is not set, this is the commit
// that Go has recorded. The result is empty if no commit is known.
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
