package flags

import "runtime/debug"

// BuildInfo is what `make build` and `make release` stamp onto the program.
type BuildInfo struct {
	Version string
	Commit  string // the full id; empty when it was not stamped
}

// From is the commit the program was built from: the one stamped, else the one Go has
// noted; empty when it is not known.
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
