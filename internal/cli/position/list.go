// Package position has the commands about positions in the topic: position, lag, pause and resume.
package position

import (
	"context"
	"strconv"
	"strings"

	"projector/internal/cli/flags"
	"projector/internal/cli/output"
)

// Cmd are the commands about positions.
type Cmd struct {
	List   positionListCmd `cmd:"" default:"withargs" help:"Show the position of every partition, why it does not continue, and how soon retention overtakes it."`
	Set    setCmd          `cmd:"" help:"Set where a partition continues."`
	Remove removeCmd       `cmd:"" help:"Remove the positions of a consumer group that is no longer used."`
}

type positionListCmd struct {
	viewFlags
}

type positionDocument struct {
	Topic         string   `json:"topic"`
	Partition     int32    `json:"partition"`
	Position      *int64   `json:"position"`
	LogStart      *int64   `json:"log_start"`
	End           *int64   `json:"end"`
	LagRecords    *int64   `json:"lag_records"`
	MarginRecords *int64   `json:"margin_records"`
	MarginSeconds *float64 `json:"margin_seconds"`
	State         string   `json:"state"`
	Reason        *string  `json:"reason"`
	Owner         *string  `json:"owner"`
}

func (c *positionListCmd) Run(ctx context.Context, std *output.Streams) error {
	ctx, cancel := context.WithTimeout(ctx, flags.OneShotWithin)
	defer cancel()
	view, err := c.open(ctx, std)
	if err != nil {
		return err
	}
	defer view.close()
	status, err := view.read(ctx)
	if err != nil {
		return err
	}
	view.details(ctx, status)
	for _, remark := range status.remarks {
		std.Notef("%s\n", remark)
	}
	if err := c.print(std, status); err != nil {
		return err
	}
	return status.incomplete(std)
}

func (c *positionListCmd) print(std *output.Streams, status *status) error {
	number := func(name string) output.Column { return output.Right(name, 10) }
	rows := c.Rows(std.Out, "", output.Right("PARTITION", 9), number("POSITION"), number("LOG START").Optional(),
		number("END"), number("MARGIN"), output.Right("LASTS", 7), output.Left("STATE", 12))
	for i := range status.partitions {
		c.add(rows, &status.partitions[i])
	}
	if err := rows.End(""); err != nil || c.JSON() {
		return err
	}
	for _, reason := range status.reasons() {
		std.Printf("%s\n", output.Printable(reason))
	}
	printOwners(std, status)
	return nil
}

// printOwners prints a line for each owner with its partitions, and one line for partitions without
// an owner. A column of owners would make the table too wide.
func printOwners(std *output.Streams, s *status) {
	owners, owned := s.owners()
	for _, owner := range owners {
		if owner != "" {
			std.Printf("owned by %s: %s\n", output.Printable(owner), strings.Join(owned[owner], ", "))
		}
	}
	if free := s.free(); free != "" {
		std.Printf("%s\n", free)
	}
}

// owners returns the owners in the order of their first partitions, and the partitions of each. The
// partitions without an owner have the owner "".
func (s *status) owners() (owners []string, owned map[string][]string) {
	owned = map[string][]string{}
	for i := range s.partitions {
		p := &s.partitions[i]
		if owned[p.owner] == nil {
			owners = append(owners, p.owner)
		}
		owned[p.owner] = append(owned[p.owner], strconv.Itoa(int(p.number)))
	}
	return owners, owned
}

// free returns a line with the partitions that no instance owns, or "" if there are none.
func (s *status) free() string {
	_, owned := s.owners()
	if len(owned[""]) == 0 || !s.ownersKnown {
		return ""
	}
	return "no instance owns: " + strings.Join(owned[""], ", ")
}

func (c *positionListCmd) add(rows *output.Rows, p *partition) {
	d := positionDocument{
		Topic: c.Topic, Partition: p.number, Position: p.position, End: p.end, LagRecords: p.records,
		MarginSeconds: output.Seconds(p.margin), State: string(p.state), Reason: output.OrNull(p.reason), Owner: output.OrNull(p.owner),
	}
	if p.end != nil {
		d.LogStart = &p.start
		if p.position != nil {
			d.MarginRecords = new(*p.position - p.start)
		}
	}
	lasts := ""
	if p.margin != nil {
		lasts = output.AgeText(*p.margin)
	}
	rows.Add(d, p.number, d.Position, output.OffsetText(d.LogStart), output.OffsetText(d.End), d.MarginRecords, lasts, d.State)
}
