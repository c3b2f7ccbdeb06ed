package process

import (
	"context"

	"projector/internal/cli/build"
	"projector/internal/cli/memory"
	"projector/internal/cli/output"
)

// RunCmd is the command run.
type RunCmd struct {
	Flags
}

// Run consumes until ctx ends.
func (c *RunCmd) Run(ctx context.Context, io *output.Streams, built build.Info) error {
	log, err := c.Logger(io.Err)
	if err != nil {
		return err
	}
	p, err := c.Build(ctx, log, built)
	if err != nil {
		return err
	}
	defer p.Close()
	plan := memory.Share(c.Resident())
	release := plan.Apply()
	defer release()
	return p.Run(ctx)
}
