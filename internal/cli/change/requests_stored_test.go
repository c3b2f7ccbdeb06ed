package change_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// TestRequestsMadeByHandNameNoServer inserts requests by SQL. Such a request cannot send the
// approver's passwords to another server, and it cannot read the approver's files.
func TestRequestsMadeByHandNameNoServer(t *testing.T) {
	s := clitest.NewStage(t)
	other := colleague(t, s)
	for _, arguments := range []string{
		`{run,"{}"}`, `{"migrate up","{\"FourEyes\":\"off\"}"}`, `{"account skip","null"}`, `{"dlq replay","[]"}`, `{pause,"{}",--brokers=evil:9092}`,
		// These requests have the form of an earlier version of the program.
		`{dlq,replay,--brokers=evil:9092}`, `{pause,--all,--reason=x,--database-url=postgres://evil}`,
		`{dlq,replay,--from-file=/etc/hostname,--reason=x}`, `{dlq,replay,--mapping=/etc/hostname}`, `{dlq,replay,--yes=true}`,
		`{pause,--all,--reason=x,--sasl-username=me}`, `{pause,--all,--reason=x,--brokers,evil}`, `{migrate,--four-eyes=off}`, `{run}`, `{}`,
	} {
		refusedAsMadeByHand(t, s, other, requestByHand(t, s, "'replay', $1::text[], '{}', '{}', '{}'", arguments))
	}
}

// requestByHand inserts a request by SQL. The text values has its action, arguments, and the flags,
// names and contents of its files.
func requestByHand(t *testing.T, s *clitest.Stage, values string, args ...any) (id string) {
	t.Helper()
	err := s.Pool.QueryRow(t.Context(), `INSERT INTO repair_request (action, arguments, file_flags, file_names, file_contents, plan_sha256, records, actor)
		VALUES (`+values+`, 'x', 1, 'me') RETURNING id::text`, args...).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func refusedAsMadeByHand(t *testing.T, s, other *clitest.Stage, id string) {
	t.Helper()
	clitest.Contains(t, other.Refused(exit.Failed, "approve", id, "--reason=x"), "was made by hand")
	s.Await("SELECT state = 'refused' FROM repair_request WHERE id = $1", id)
}

// TestARequestDoesNotKeepAPipe replays a file that a shell makes from the output of a command. The
// plan reads it, and nothing is left to be kept for the person who approves the request.
func TestARequestDoesNotKeepAPipe(t *testing.T) {
	s := clitest.NewStage(t)
	s.SeveralDeadLetters()
	file := s.Must("dlq", "export", "--account=acc-b")
	s.Must("migrate", "--four-eyes=on")
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, []byte(file), 0o600) }() // waits for the reader
	clitest.Contains(t, s.Refused(exit.Usage, "dlq", "replay", "--from-file="+pipe, "--reason=x", "--yes"), "is a pipe", "name a file")
	if err := <-written; err != nil {
		t.Error(err)
	}
	if made := s.Lines("requests"); len(made) > 0 {
		t.Errorf("a request was made: %v", made)
	}
}

// TestARequestIsReadOnlyAsTheProgramStoresIt shows that a request is refused if an option is added,
// removed, repeated or in another form. A request that names a local file, or the file of another
// flag, is refused too.
func TestARequestIsReadOnlyAsTheProgramStoresIt(t *testing.T) {
	s, other := underFourEyes(t)
	id := requested(t, s, "pause", "--all", "--reason=x")
	copied := func(options, flags, names, contents string) (id string) {
		if err := s.Pool.QueryRow(t.Context(), `INSERT INTO repair_request (action, records, actor, reason, arguments, file_flags, file_names, file_contents, plan_sha256)
			SELECT action, records, actor, reason, ARRAY[arguments[1], `+options+`], `+flags+`, `+names+`, `+contents+`, plan_sha256 FROM repair_request WHERE action = 'pause' LIMIT 1
			RETURNING id::text`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	for _, forged := range []string{
		copied(`overlay(arguments[2] PLACING '{"DatabaseURL":"postgres://evil",' FROM 1 FOR 1)`, "'{}'", "'{}'", "'{}'"),
		copied(`overlay(arguments[2] PLACING '{"Brokers":["evil:9092"],' FROM 1 FOR 1)`, "'{}'", "'{}'", "'{}'"),
		copied(`replace(arguments[2], '"NewGroup":false,', '')`, "'{}'", "'{}'", "'{}'"),
		copied(`replace(arguments[2], '"NewGroup"', '"All":true,"NewGroup"')`, "'{}'", "'{}'", "'{}'"),
		copied(`arguments[2] || ' '`, "'{}'", "'{}'", "'{}'"), copied(`lower(arguments[2])`, "'{}'", "'{}'", "'{}'"),
		copied(`replace(arguments[2], '"ProjectionFile":""', '"ProjectionFile":"/etc/hostname"')`, "'{}'", "'{}'", "'{}'"),
		copied(`replace(arguments[2], '"ProjectionFile":""', '"ProjectionFile":"hostname"')`, "'{}'", "'{}'", "'{}'"),
		copied(`replace(arguments[2], '"ProjectionFile":""', '"ProjectionFile":"hostname"')`, "'{mapping}'", "'{hostname}'", "'{x}'"),
		copied(`arguments[2]`, "'{projection-file}'", "'{hostname}'", "'{x}'"),
	} {
		clitest.Contains(t, s.Refused(exit.Failed, "requests", "show", forged), "was made by hand, or by another version")
		clitest.Contains(t, other.Refused(exit.Failed, "approve", forged, "--reason=x"), "was made by hand, or by another version", "nothing was changed")
		s.Await("SELECT state = 'refused' FROM repair_request WHERE id = $1", forged)
	}
	clitest.Equal(t, clitest.Pick(s.Lines("position"), "state"), "running")
	group := copied(`replace(replace(arguments[2], '"NewGroup":false', '"NewGroup":true'), '"Group":""', '"Group":"another"')`, "'{}'", "'{}'", "'{}'")
	clitest.Contains(t, other.Refused(exit.Failed, "approve", group, "--reason=x"), "the plan has changed since")
	other.Must("approve", copied("arguments[2]", "'{}'", "'{}'", "'{}'"), "--reason=as it was")
	s.Must("reject", id, "--reason=done already")
}

// TestARequestIsBounded shows that the table of requests limits the size of the files, and the size
// of the other columns together.
func TestARequestIsBounded(t *testing.T) {
	s := clitest.NewStage(t)
	for _, values := range []string{
		"'{x}', ARRAY[convert_to(repeat('x', 64 << 20), 'UTF8'), convert_to(repeat('x', 1 << 20), 'UTF8')], 'me', NULL",
		"ARRAY[repeat('x', 5 << 20)], '{}', 'me', NULL", "'{x}', '{}', 'me', repeat('x', 5 << 20)", "'{x}', '{}', repeat('x', 5 << 20), NULL",
	} {
		_, err := s.Pool.Exec(t.Context(), `INSERT INTO repair_request (action, arguments, file_contents, actor, reason, file_flags, file_names, plan_sha256, records)
			SELECT 'skip', `+values+`, '{}', '{}', 'x', 1`)
		if err == nil || !strings.Contains(err.Error(), "23514") {
			t.Errorf("%.40s: %v", values, err)
		}
	}
	s.Exec(`INSERT INTO repair_request (action, arguments, file_contents, actor, file_flags, file_names, plan_sha256, records)
		VALUES ('skip', '{x}', ARRAY[convert_to(repeat('x', 64 << 20), 'UTF8')], 'me', '{from-file}', '{x}', 'x', 1)`)
}
