package rebuild_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"projector/errclass"
	"projector/readmodel"
	"projector/readmodel/accountdb"
	"projector/readmodel/rebuild"
)

// TestProposedCommandsNameTheReader expects that the command in an error names the topic, the
// projection and the group of the process that failed.
func TestProposedCommandsNameTheReader(t *testing.T) {
	const reader = " --topic=bank --projection-file=points.sql --group=g2"
	for want, err := range map[string]error{
		"`projector rebuild" + reader + " --yes`":               &readmodel.FileChangedError{Projection: "points"},
		"`projector rebuild" + reader + " --mapping=m --yes`":   &readmodel.MappingChangedError{Projection: "points", Now: "--mapping=m"},
		"projector rebuild" + reader + " --yes":                 &accountdb.DamagedRowError{AccountID: "a"},
		"`projector pause --all" + reader + " --reason=rebuild": &rebuild.SwapGivenUpError{},
		"projector pause --all" + reader + " --reason=rebuild":  &rebuild.StillRunningError{Why: rebuild.ErrOldTextRuns},
	} {
		if text := errclass.Safe(readmodel.ForReader(fmt.Errorf("swap: %w", err), reader)); !strings.Contains(text, want) {
			t.Errorf("%q is missing in: %s", want, text)
		}
	}
	other := errors.New("other")
	if !errors.Is(readmodel.ForReader(other, reader), other) || readmodel.ForReader(nil, reader) != nil {
		t.Error("an error that proposes nothing was changed")
	}
}
