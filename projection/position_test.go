package projection_test

import (
	"testing"

	"projector/projection"
)

// TestAClaimResumesAtTheLowerOffset shows which of the stored position, Kafka's committed offset and
// the start of the log decides where a claim continues.
func TestAClaimResumesAtTheLowerOffset(t *testing.T) {
	cases := map[string]struct {
		stored, committed, logStart int64
		setByHand                   bool
		want                        int64
	}{
		"equal":                                {stored: 9, committed: 9, want: 9},
		"the committed offset is lower":        {stored: 9, committed: 5, want: 5},
		"the stored position is lower":         {stored: 5, committed: 9, want: 5},
		"nothing was committed":                {stored: 9, committed: projection.NoOffset, want: 9},
		"a person has set the position":        {stored: 9, committed: 5, setByHand: true, want: 9},
		"processed records were deleted":       {stored: 9, committed: 5, logStart: 7, want: 7},
		"unread records were deleted":          {stored: 5, committed: 9, logStart: 7, want: 5},
		"unread and processed records deleted": {stored: 5, committed: 3, logStart: 7, want: 3},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			stored := projection.StoredPosition{Position: projection.Position{Next: c.stored, SetByHand: c.setByHand}}
			claim := projection.Claim{Committed: c.committed, LogStart: c.logStart}
			if got := claim.Resume(&stored); got != c.want {
				t.Errorf("resumes at %d, want %d", got, c.want)
			}
		})
	}
}
