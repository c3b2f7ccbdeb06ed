package main

import (
	"fmt"
	"runtime"
)

type versionCmd struct{}

// Run prints the version.
func (*versionCmd) Run(io *streams) error {
	_, err := fmt.Fprintf(io.out, "projector %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
