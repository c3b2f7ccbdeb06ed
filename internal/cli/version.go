package cli

import (
	"fmt"
	"runtime"

	"projector/internal/cli/build"
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
func (c *versionCmd) Run(std *streams, built build.Info) error {
	from := built.From()
	if c.json() {
		return printJSON(std.out, versionDocument{
			Version: built.Version, Commit: orNull(from), GoVersion: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		})
	}
	if from != "" {
		from = "commit " + from[:min(12, len(from))] + ", "
	}
	_, err := fmt.Fprintf(std.out, "projector %s (%s%s, %s/%s)\n", built.Version, from, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
