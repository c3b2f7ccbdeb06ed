package dlq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"projector/dlq"
	"projector/errclass"
	"projector/internal/cli/output"
	"projector/internal/replay"
	"projector/internal/topic"
)

type scan struct {
	replay.Scan
	unread output.Unread
	shown  *output.Progress
	tools  *tools
}

type readFlags struct {
	filterFlags // the first group in the help
	topicFlags
	output.Flags
}

// reading returns a scan of the selected dead letters. The caller must call the returned function
// done.
func (f *readFlags) reading(ctx context.Context, std *output.Streams) (s *scan, done func(), err error) {
	chosen, err := f.selection(time.Now(), &f.GroupFlags)
	if err != nil {
		return nil, nil, err
	}
	opened, err := f.open(ctx, std)
	if err != nil {
		return nil, nil, err
	}
	if err := f.CheckGroup(ctx, opened.pool); err != nil {
		opened.close()
		return nil, nil, err
	}
	return opened.scan(std, chosen, false), opened.close, nil
}

// nothing returns the text for no dead letters.
func (f *readFlags) nothing() string {
	if f.filters() {
		return "no dead letter matches the filters"
	}
	return "no dead letters"
}

// scan returns a scan of the selected dead letters. If whole is true, an unreadable partition is an
// error, because a change depends on the result.
func (t *tools) scan(std *output.Streams, chosen replay.Selection, whole bool) *scan {
	s := &scan{
		Scan:   replay.Scan{Topic: t.DeadLetterTopic(), Source: t.reader, Store: t.store(0), Formats: t.formats, Selection: chosen},
		unread: output.Unread{Topic: t.DeadLetterTopic()},
		shown:  output.NewProgress(std.Err, "read"),
		tools:  t,
	}
	s.Progress = s.shown.Update
	if !whole {
		s.Lost = s.unread.Add
	}
	return s
}

// emptyResult returns the text for an empty result. It returns "" if a partition could not be read.
func (s *scan) emptyResult(text string) string {
	if len(s.unread.Lost) > 0 {
		return ""
	}
	return text
}

// refused explains why a change is refused if a partition of the DLQ topic cannot be read, and how
// to select only the readable partitions. Of two events for one version only the first is applied,
// and this event may be in an unreadable partition.
func refused(err error) error {
	var incomplete *replay.IncompleteError
	if !errors.As(err, &incomplete) {
		return err
	}
	text := incomplete.Lost.SafeText() + ". The selection is incomplete without it, so nothing was changed"
	if len(incomplete.Others) > 0 {
		text += "; to go on with the others: --dlq-partition " + output.NumbersText(incomplete.Others)
	}
	return errclass.Text(text) // no exit.Refusal, because a request stays open until the partition can be read
}

// finish reports records that are no dead letters. If no dead letter was selected, it prints
// possible reasons. If partitions could not be read, it reports them and returns an error.
func (s *scan) finish(ctx context.Context, std *output.Streams) error {
	if s.Foreign > 0 {
		std.Notef("%d records of topic %s are no dead letters and were left out\n", s.Foreign, s.Topic)
	}
	if s.Matched == 0 && len(s.unread.Lost) == 0 {
		s.explainNothing(ctx, std)
	}
	return s.unread.Explain(std)
}

// explainNothing prints why no dead letter is selected. The topic may not exist, the dead letters
// may be of other projections, or none may have the given account, partitions and offsets.
func (s *scan) explainNothing(ctx context.Context, std *output.Streams) {
	for _, name := range slices.Sorted(maps.Keys(s.Others)) {
		std.Notef("%d dead letters are of projection %s, see --projection\n", s.Others[name], output.Printable(name))
	}
	f, t := &s.Filter, s.tools
	places := len(f.Partitions) + len(f.Offsets) + len(f.DLQPartitions) + len(f.DLQOffsets)
	absent := t.lacks(ctx, s.Topic, f.DLQPartitions)
	if f.Account != "" || places > 0 {
		of := ""
		if len(f.Partitions)+len(f.Offsets) > 0 {
			of = " (--partition and --offset are those of the source topic)"
		}
		std.Notef("no dead letter has the account, partitions and offsets that were given%s%s; `projector dlq summary%s` counts what there is\n",
			of, t.lacks(ctx, t.Topic, f.Partitions)+absent, t.again())
	} else if absent != "" {
		std.Notef("%s\n", strings.TrimPrefix(absent, "; "))
	}
}

// lacks returns a text if the topic does not exist, or if at least one of the given partitions does
// not exist. It returns "" if the brokers do not answer in time.
func (t *tools) lacks(ctx context.Context, name string, partitions []int32) string {
	ctx, cancel := context.WithTimeout(ctx, endsWithin)
	defer cancel()
	detail, exists, err := topic.Describe(ctx, kadm.NewClient(t.client), name)
	n := len(detail.Partitions)
	outside := func(p int32) bool { return p < 0 || int(p) >= n }
	switch {
	case err != nil:
		return ""
	case !exists:
		return fmt.Sprintf("; topic %q does not exist on these brokers", name)
	case !slices.ContainsFunc(partitions, outside):
		return ""
	}
	return fmt.Sprintf("; topic %s has %s", name, output.PartitionsText(n))
}

// placeOf returns the partition and offset of a dead letter in the DLQ topic.
func placeOf(e *dlq.Entry) string { return output.PlaceText(e.DLQPartition, e.DLQOffset) }
