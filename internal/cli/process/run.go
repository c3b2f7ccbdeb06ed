package process

import (
	"context"

	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/internal/pace"
)

// RunCmd is the command `projector run`.
type RunCmd struct {
	Flags
}

// Run consumes until ctx ends.
func (c *RunCmd) Run(ctx context.Context, io *output.Streams, built flags.BuildInfo) error {
	log, err := c.Logger(io.Err)
	if err != nil {
		return err
	}
	p, err := c.Build(ctx, log, built)
	if err != nil {
		return err
	}
	defer p.Close()
	plan := flags.ShareMemory(c.Resident())
	release := plan.Apply()
	defer release()
	go pace.SaveProcessors(ctx)
	return p.Run(ctx)
}
