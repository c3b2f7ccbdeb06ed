package cli

import (
	"fmt"
	"runtime"

	"projector/internal/cli/flags"
	"projector/internal/cli/output"
)

type versionCmd struct {
	output.Flags
}

type versionDocument struct {
	Version   string  `json:"version"`
	Commit    *string `json:"commit"`
	GoVersion string  `json:"go_version"`
	OS        string  `json:"os"`
	Arch      string  `json:"arch"`
}

func (c *versionCmd) Run(std *output.Streams, built flags.BuildInfo) error {
	from := built.From()
	d := versionDocument{Version: built.Version, Commit: output.OrNull(from), GoVersion: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if from != "" {
		from = "commit " + from[:min(12, len(from))] + ", "
	}
	return c.Print(std.Out, d, fmt.Sprintf("projector %s (%s%s, %s/%s)\n", built.Version, from, d.GoVersion, d.OS, d.Arch))
}
