package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// What is stamped at build time, by `make build` and `make release`.
var (
	version = "dev"
	commit  = "" // the full id, when it is known
)

type versionCmd struct {
	outputFlags
}

// versionDocument is the version in JSON.
type versionDocument struct {
	Version   string  `json:"version"`
	Commit    *string `json:"commit"`
	GoVersion string  `json:"go_version"`
	OS        string  `json:"os"`
	Arch      string  `json:"arch"`
}

// Run prints the version.
func (c *versionCmd) Run(std *streams) error {
	from := builtFrom()
	if c.json() {
		return printJSON(std.out, versionDocument{
			Version: version, Commit: orNull(from), GoVersion: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		})
	}
	if from != "" {
		from = "commit " + from[:min(12, len(from))] + ", "
	}
	_, err := fmt.Fprintf(std.out, "projector %s (%s%s, %s/%s)\n", version, from, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// builtFrom is the commit the program was built from: the one stamped, else the one Go
// has noted; empty when it is not known.
func builtFrom() string {
	if commit != "" {
		return commit
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
