package change_test

import (
	"fmt"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// TestARequestByHandHidesNoOther inserts requests that only SQL can make: lists with nulls, and lists
// of lists. An operator may insert such rows, and nobody may delete them. Other requests must still be
// listed, and each of these must be refused or rejected.
func TestARequestByHandHidesNoOther(t *testing.T) {
	s := clitest.NewStage(t)
	other := colleague(t, s)
	for _, values := range []string{
		"'{NULL}', '{}', '{}', '{}'", "'{pause,NULL}', '{}', '{}', '{}'", "'{{pause,x}}', '{}', '{}', '{}'", "'[5:6]={pause,x}', '{}', '{}', '{}'",
		"'{x}', '{NULL}', '{x}', '{x}'", "'{x}', '{x}', '{NULL}', '{x}'", "'{x}', '{x}', '{x}', '{NULL}'", "'{x}', '{{x}}', '{{x}}', '{{x}}'",
	} {
		var id int
		err := s.Pool.QueryRow(t.Context(), `INSERT INTO repair_request (arguments, file_flags, file_names, file_contents, action, plan_sha256, records, actor)
			VALUES (`+values+`, 'pause', 'x', 1, 'me') RETURNING id`).Scan(&id)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(values, func(t *testing.T) {
			clitest.Contains(t, s.Must("requests", "--state=open"), fmt.Sprint(id))
			clitest.Contains(t, other.Refused(exit.Failed, "approve", fmt.Sprint(id), "--reason=x"), "was made by hand")
			s.Await("SELECT state = 'refused' FROM repair_request WHERE id = $1", id)
		})
	}
}
