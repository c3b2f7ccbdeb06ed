//go:build !nodemo

package cli

import "projector/internal/cli/demo"

// demoCommand is not in releases and images, see demo_none.go.
type demoCommand struct {
	Demo demo.Cmd `cmd:"" help:"Show the whole system on this machine, with nothing to set up."`
}
