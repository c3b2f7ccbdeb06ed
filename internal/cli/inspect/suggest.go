package inspect

import (
	"projector/internal/cli/output"
	"projector/internal/mapping"
)

type suggestion struct {
	Mapping string   `json:"mapping"` // YAML
	Decide  []string `json:"decide"`
}

func (c *Cmd) suggest(std *output.Streams, samples *mapping.Samples) error {
	text, decide := samples.Suggest(c.ShowPayload)
	return c.Print(std.Out, suggestion{Mapping: text, Decide: decide}, text)
}
