package main

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
	File string `required:"" type:"path" placeholder:"FILE" help:"File to write: JSON lines with the whole records. It must not exist."`
	dlqFlags
	filterFlags
	outputFlags
}

// exportDocument is what an export did, in JSON.
type exportDocument struct {
	Exported int    `json:"exported"`
	File     string `json:"file"`
}

// Run exports dead letters.
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
	file, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return usagef("--file: %s exists already, perhaps with corrections in it; name another", c.File)
	}
	if err != nil {
		return usagef("--file: %w", err)
	}
	s := &scan{dlqTools: tools, selection: chosen, payload: true, progress: newProgress(std.err, "read")}
	n, err := s.export(ctx, file)
	s.progress.done()
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(c.File)) // half an export would be taken for a whole one
	}
	s.warnForeign(std)
	if c.json() {
		return printJSON(std.out, exportDocument{n, c.File})
	}
	_, err = fmt.Fprintf(std.out, "exported %d dead letters to %s\n", n, c.File)
	return err
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
