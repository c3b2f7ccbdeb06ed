package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"projector/dlq"
)

type dlqExportCmd struct {
	File string `default:"-" type:"path" placeholder:"FILE" help:"File to write: JSON lines with the whole records. It must not exist. Default -, standard output."`
	dlqFlags
	filterFlags
	outputFlags
}

// stdio is the file name that means standard output.
const stdio = "-"

// exportDocument is what an export did, in JSON.
type exportDocument struct {
	Exported int    `json:"exported"`
	File     string `json:"file"`
}

// Run exports dead letters. On standard output there is nothing but them.
func (c *dlqExportCmd) Run(ctx context.Context, std *streams) (err error) {
	chosen, err := c.selection(time.Now(), &c.groupFlags)
	if err != nil {
		return err
	}
	tools, err := c.open(ctx, std)
	if err != nil {
		return err
	}
	defer tools.close()
	s := &scan{dlqTools: tools, selection: chosen, payload: true, progress: newProgress(std.err, "read")}
	n, err := c.write(ctx, s, std)
	if err != nil {
		return err
	}
	return errors.Join(c.report(std, n), s.finish(std))
}

func (c *dlqExportCmd) report(std *streams, n int) error {
	if c.File != stdio && c.json() {
		return printJSON(std.out, exportDocument{n, c.File})
	}
	said, where := std.out, c.File
	if c.File == stdio {
		said, where = std.err, "standard output"
	}
	_, err := fmt.Fprintf(said, "exported %d dead letters to %s\n", n, where)
	return err
}

// write writes the dead letters to where they are to go and answers how many.
func (c *dlqExportCmd) write(ctx context.Context, s *scan, std *streams) (int, error) {
	defer s.progress.done()
	if c.File == stdio {
		return s.export(ctx, std.out)
	}
	file, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return 0, usagef("--file: %s exists already, perhaps with corrections in it; name another", c.File)
	}
	if err != nil {
		return 0, usagef("--file: %w", err)
	}
	n, err := s.export(ctx, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return 0, errors.Join(err, os.Remove(c.File)) // half an export would be taken for a whole one
	}
	return n, nil
}

func (s *scan) export(ctx context.Context, w io.Writer) (int, error) {
	out, n := bufio.NewWriter(w), 0
	err := s.each(ctx, func(d *deadLetter) error {
		n++
		return dlq.Export(out, s.topic, &d.entry)
	})
	if err != nil {
		return 0, err
	}
	return n, out.Flush()
}
