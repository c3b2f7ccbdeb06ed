package replay

import (
	"context"
	"errors"
	"fmt"
	"io"

	"projector/dlq"
)

// EachOfFile calls fn with every selected dead letter of an export file. It ends with an
// ExportError if a line cannot be read, and with a RefusedExportError if the export is refused.
func (s *Scan) EachOfFile(ctx context.Context, file io.Reader, fn func(*DeadLetter) error) error {
	x, err := s.readExport(ctx, file)
	if err != nil {
		return err
	}
	if err := x.compare(ctx, s); err != nil {
		return err
	}
	var chunk []*DeadLetter
	for _, line := range x.lines {
		d := line.letter
		if len(chunk) > 0 && (len(chunk) >= ChunkRecords || chunk[0].DLQTopic != d.DLQTopic) {
			if err := s.deliver(ctx, chunk, fn); err != nil {
				return err
			}
			chunk = chunk[:0]
		}
		chunk = append(chunk, d)
	}
	return s.deliver(ctx, chunk, fn)
}

func (s *Scan) readExport(ctx context.Context, file io.Reader) (*export, error) {
	x := &export{places: map[dlqPlace]*exportLine{}}
	empty := true
	for exported, err := range dlq.ReadExport(file) {
		empty = false
		if err := s.refusal(&exported, err); err != nil {
			return nil, err
		}
		d, err := s.Read(ctx, exported.DLQTopic, exported.Entry)
		if err != nil {
			return nil, err
		}
		if d == nil {
			continue
		}
		d.Corrected = exported.Corrected
		if err := x.add(exported.Line, exported.Original, d); err != nil {
			return nil, err
		}
		d.Entry.Expected = exported.ExpectedOf(d.Entry.AccountID)
	}
	if empty {
		return nil, &ExportError{errors.New("is empty; write it with `projector dlq export --file=FILE`")}
	}
	return x, nil
}

// refusal returns the error that ends the scan, or nil if the line of the export is accepted. The
// parameter err is the error of reading the line.
func (s *Scan) refusal(line *dlq.Exported, err error) error {
	var ambiguous *dlq.AmbiguousValueError
	of := s.Filter.Projection
	switch {
	case errors.As(err, &ambiguous):
		return &RefusedExportError{err.Error()}
	case err != nil:
		return &ExportError{err}
	case of != "" && of != line.Projection:
		return refusedLine(line.Line, "is a dead letter of projection %s and not of %s: replay it with --projection=%[1]s", line.Projection, of)
	default:
		return nil
	}
}

// ExportError says which part of an export cannot be read.
type ExportError struct{ Err error }

func (e *ExportError) Error() string { return fmt.Sprintf("read the export: %v", e.Err) }

func (e *ExportError) Unwrap() error { return e.Err }
