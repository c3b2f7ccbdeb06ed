package readmodel_test

import (
	"fmt"
	"strings"
	"testing"

	"projector/errclass"
	"projector/readmodel"
)

// TestProposedCommandsNameTheReader expects that the command in an error names the topic, the
// projection and the group of the process that failed.
func TestProposedCommandsNameTheReader(t *testing.T) {
	const reader = " --topic=bank --projection-file=points.sql --group=g2"
	if got := readmodel.ReaderFlags(readmodel.WithReader(t.Context(), func() string { return reader })); got != reader {
		t.Errorf("got %q", got)
	}
	for want, err := range map[string]error{
		"`projector rebuild" + reader + " --yes`":             &readmodel.FileChangedError{Projection: "points", Reader: reader},
		"`projector rebuild" + reader + " --mapping=m --yes`": &readmodel.MappingChangedError{Projection: "points", Now: "--mapping=m", Reader: reader},
	} {
		if text := errclass.Safe(fmt.Errorf("swap: %w", err)); !strings.Contains(text, want) {
			t.Errorf("%q is missing in: %s", want, text)
		}
	}
}
