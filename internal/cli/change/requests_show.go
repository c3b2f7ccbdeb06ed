package change

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/dlq"
	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/cli/output"
	"projector/readmodel"
)

type showCmd struct {
	File string `placeholder:"NAME" help:"Print only this file of the request, by its name or by its flag, e.g. from-file."`
	ID   int64  `arg:"" help:"The number of the request."`
	Servers
}

// shownDocument is a request in JSON with the details that an approver needs.
type shownDocument struct {
	requestDocument
	Actor   string            `json:"actor"`
	Command string            `json:"command"`
	Files   []fileDocument    `json:"files"`
	Plan    []json.RawMessage `json:"plan"`
}

type fileDocument struct {
	Flag   string `json:"flag"`
	Name   string `json:"name"`
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

type contentDocument struct {
	fileDocument
	Content       *string `json:"content"`
	ContentBase64 *string `json:"content_base64,omitempty"`
}

func describe(f *readmodel.RequestedFile) fileDocument {
	sum := sha256.Sum256(f.Content)
	return fileDocument{Flag: f.Flag, Name: f.Name, Bytes: len(f.Content), SHA256: hex.EncodeToString(sum[:])}
}

// Run shows the command, the files and the present plan of a request. The plan shows amounts if the
// user may approve requests.
func (c *showCmd) Run(ctx context.Context, std *output.Streams, typed *kong.Context) error {
	pool, err := flags.OpenReadModel(ctx, &c.DatabaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	r, err := loadRequest(ctx, pool, typed.Model, c.ID)
	if err != nil {
		return err
	}
	if c.File != "" {
		return c.printFile(std.Out, &r.Stored)
	}
	if r.wrong != nil {
		return r.wrong
	}
	// The command names files without their folders. If they are not in the current folder, it fails
	// and changes nothing.
	d := shownDocument{
		requestDocument: documentOf(typed.Model, &r.Request), Actor: r.Request.Actor, Command: commandLine(words(r.leaf)), Files: []fileDocument{},
	}
	for i := range r.Stored.Files {
		d.Files = append(d.Files, describe(&r.Stored.Files[i]))
	}
	amounts, err := readmodel.MayApprove(ctx, pool)
	if err != nil {
		return err
	}
	if c.JSON() {
		return c.printJSON(ctx, std, pool, r, amounts, &d)
	}
	printHead(std, &r.Request, &d)
	return r.show(ctx, std, pool, &c.Servers, amounts)
}

func printHead(std *output.Streams, r *readmodel.Request, d *shownDocument) {
	std.Printf("request %d of %s (%s), %s: %s\n%s\n", r.ID, output.Printable(r.RequestedBy), output.Printable(r.Actor), r.State,
		output.OrDash(output.Printable(r.Reason)), d.Command)
	if d.Topic != nil {
		std.Printf("topic %s, DLQ topic %s\n", output.Printable(*d.Topic), output.Printable(*d.DLQTopic))
	}
	for _, f := range d.Files {
		std.Printf("--%s: %s, %d bytes, SHA-256 %s; to read it: projector requests show %d --file=%s\n",
			output.Printable(f.Flag), output.Printable(f.Name), f.Bytes, f.SHA256, r.ID, output.Printable(f.Flag))
	}
}

// printJSON prints one document, even if a plan is no longer possible.
func (c *showCmd) printJSON(ctx context.Context, std *output.Streams, pool *pgxpool.Pool, r *requested, amounts bool, d *shownDocument) error {
	var planned bytes.Buffer
	err := r.show(ctx, &output.Streams{Out: &planned, Err: std.Err}, pool, &c.Servers, amounts)
	for line := range bytes.Lines(planned.Bytes()) {
		if line = bytes.TrimSpace(line); json.Valid(line) {
			d.Plan = append(d.Plan, bytes.Clone(line))
		}
	}
	return errors.Join(output.PrintJSON(std.Out, d), err)
}

// printFile prints a file byte for byte. On a terminal, characters that could be hostile are
// escaped.
func (c *showCmd) printFile(out io.Writer, command *readmodel.RequestedCommand) error {
	var found []*readmodel.RequestedFile
	for i := range command.Files {
		if f := &command.Files[i]; f.Name == c.File || f.Flag == strings.TrimPrefix(c.File, "--") {
			found = append(found, f)
		}
	}
	switch {
	case len(found) == 0:
		return exit.Refusef("request %d has no file %q; it has: %s", c.ID, c.File, listed(command))
	case len(found) > 1:
		return exit.Refusef("request %d has several files %s; name the flag: %s", c.ID, c.File, listed(command))
	}
	content := found[0].Content
	if c.JSON() {
		d := contentDocument{fileDocument: describe(found[0])}
		d.Content, d.ContentBase64 = dlq.TextOrBase64(content)
		return output.PrintJSON(out, d)
	}
	if !output.IsTerminal(output.Unwrapped(out)) {
		out = output.Unwrapped(out) // without escapes, so that a file can be compared byte for byte
	}
	_, err := out.Write(content)
	return err
}

func listed(command *readmodel.RequestedCommand) string {
	var names []string
	for _, f := range command.Files {
		names = append(names, f.Flag+" ("+output.Printable(f.Name)+")")
	}
	slices.Sort(names)
	return output.OrDash(strings.Join(names, ", "))
}
