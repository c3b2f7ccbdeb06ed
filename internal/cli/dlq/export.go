package dlq

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"projector/internal/cli/exit"
	"projector/internal/cli/output"
)

type dlqExportCmd struct {
	File string `default:"-" type:"path" placeholder:"FILE" help:"File to write: JSON lines with the whole records. It must not exist. Default -, standard output."`
	TopicFlags
	filterFlags
	output.Flags
}

// stdio is the file name that means standard output.
const stdio = "-"

// exportDocument is what an export did, in JSON.
type exportDocument struct {
	Exported int    `json:"exported"`
	File     string `json:"file"`
}

// Run exports dead letters. On standard output there is nothing but them.
func (c *dlqExportCmd) Run(ctx context.Context, std *output.Streams) (err error) {
	chosen, err := c.selection(time.Now(), &c.GroupFlags)
	if err != nil {
		return err
	}
	tools, err := c.Open(ctx, std)
	if err != nil {
		return err
	}
	defer tools.Close()
	s := &Scan{Tools: tools, selection: chosen, payload: true, progress: output.NewProgress(std.Err, "read")}
	n, err := c.write(ctx, s, std)
	if err != nil {
		return err
	}
	return errors.Join(c.report(std, n), s.finish(std))
}

func (c *dlqExportCmd) report(std *output.Streams, n int) error {
	if c.File != stdio && c.JSON() {
		return output.PrintJSON(std.Out, exportDocument{n, c.File})
	}
	said, where := std.Out, c.File
	if c.File == stdio {
		said, where = std.Err, "standard output"
	}
	_, err := fmt.Fprintf(said, "exported %d dead letters to %s\n", n, where)
	return err
}

// write writes the dead letters to where they are to go and answers how many.
func (c *dlqExportCmd) write(ctx context.Context, s *Scan, std *output.Streams) (int, error) {
	defer s.progress.Done()
	if c.File == stdio {
		return s.export(ctx, std.Out)
	}
	file, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return 0, exit.Usagef("--file: %s exists already, perhaps with corrections in it; name another", c.File)
	}
	if err != nil {
		return 0, exit.Usagef("--file: %w", err)
	}
	n, err := s.export(ctx, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return 0, errors.Join(err, os.Remove(c.File)) // half an export would be taken for a whole one
	}
	return n, nil
}
