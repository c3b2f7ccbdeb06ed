// Package build says which build of the program runs.
package build

import "runtime/debug"

// Info is what `make build` and `make release` stamp onto the program.
type Info struct {
	Version string
	Commit  string // the full id; empty when it was not stamped
}

// From is the commit the program was built from: the one stamped, else the one Go has
// noted; empty when it is not known.
func (i Info) From() string {
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
