package dlq

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"projector/dlq"
	"projector/internal/cli/exit"
	"projector/internal/cli/output"
	"projector/internal/replay"
)

type exportCmd struct {
	File string `default:"-" type:"path" placeholder:"FILE" help:"File to write: JSON lines with the whole records. It must not exist. Default -, standard output."`
	readFlags
}

// stdio is the file name that means standard output.
const stdio = "-"

type exportDocument struct {
	Exported int    `json:"exported"`
	File     string `json:"file"`
}

// Run exports dead letters. If they go to standard output, nothing else is printed there.
func (c *exportCmd) Run(ctx context.Context, std *output.Streams) (err error) {
	s, done, err := c.reading(ctx, std)
	if err != nil {
		return err
	}
	defer done()
	s.Payload = true
	n, err := c.write(ctx, s, std)
	if err != nil {
		return err
	}
	if c.File == stdio {
		std.Notef("exported %s to standard output\n", output.Counted(n, "dead letter"))
	} else {
		err = c.Print(std.Out, exportDocument{n, c.File}, fmt.Sprintf("exported %s to %s\n", output.Counted(n, "dead letter"), c.File))
	}
	return errors.Join(err, s.finish(ctx, std))
}

// write writes the dead letters to the file or standard output. It returns their number.
func (c *exportCmd) write(ctx context.Context, s *scan, std *output.Streams) (int, error) {
	defer s.shown.Done()
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
		return 0, errors.Join(err, os.Remove(c.File)) // an incomplete file would look complete
	}
	return n, nil
}

func (s *scan) export(ctx context.Context, w io.Writer) (int, error) {
	out, n := bufio.NewWriter(w), 0
	err := s.Each(ctx, func(d *replay.DeadLetter) error {
		n++
		return dlq.Export(out, s.Topic, &d.Entry)
	})
	if err != nil {
		return 0, err
	}
	return n, out.Flush()
}
