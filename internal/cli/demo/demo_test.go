package demo_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"projector/internal/cli/clitest"
	"projector/internal/cli/demo"
	"projector/internal/cli/exit"
	"projector/internal/devstack/devtest"
)

// The variable small has the flags of a demo that takes about a second.
var small = []string{"--accounts=50", "--events=2000", "--partitions=3"}

// runDemo runs the command and returns the exit status, stdout and stderr.
func runDemo(ctx context.Context, args ...string) (status int, out, errOut string) {
	var stdout, stderr bytes.Buffer
	status = clitest.Execute(ctx, append([]string{"demo"}, args...), &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

// withoutServers removes the server addresses from the test's environment.
func withoutServers(t *testing.T) {
	t.Helper()
	for _, name := range []string{"DATABASE_URL", "KAFKA_BROKERS", "KAFKA_TOPIC", "LISTEN_ADDR"} {
		t.Setenv(name, "")
		if err := os.Unsetenv(name); err != nil { // Setenv restores it at the end
			t.Fatal(err)
		}
	}
}

func TestDemoOnItsOwnServers(t *testing.T) {
	withoutServers(t)
	temporary := t.TempDir()
	for _, dir := range []string{temporary, filepath.Dir(temporary)} { // PostgreSQL's user must be able to enter it
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("TMPDIR", temporary)
	status, out, errOut := runDemo(t.Context(), small...)
	if status != exit.OK {
		t.Fatalf("status %d\n%s%s", status, out, errOut)
	}
	for _, want := range []string{
		`events/s +[0-9,]+ \(2,[0-9]{3} records in `,
		`applied +[1-9]`, `duplicate +[1-9]`, `ignored +[1-9]`, `dead_lettered +[1-9]`,
		`malformed_payload +[1-9]`, `unknown_event_type +[1-9]`, `invalid_amount +[1-9]`, `unsupported_currency +[1-9]`,
		`currency_mismatch +[1-9]`, `version_gap +[1-9]`, `version_conflict +[1-9]`, `balance_overflow +[1-9]`,
		`rejected_by_database +1\n`,
		`Stale accounts: 11\n`,
		`ok  50 accounts`, `ok  [0-9]+ dead letters`, `ok  2,[0-9]{3} records`,
		` demo --stay\n`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the page does not match %s:\n%s", want, out)
		}
	}
	proposedLines(t, out)
	if strings.Contains(out, "\x1b") || strings.Contains(errOut, "\x1b") {
		t.Error("colours without a terminal")
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// proposedLines returns the command lines that the demo's output proposes.
func proposedLines(t *testing.T, page string) []string {
	t.Helper()
	_, rest, found := strings.Cut(page, "What to type next")
	if !found {
		t.Fatalf("nothing to type in\n%s", page)
	}
	binary, err := os.Executable() // its path is very long, so lines with it may be too long
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(rest) {
		if len([]rune(strings.ReplaceAll(line, binary, "./projector"))) > 81 {
			t.Errorf("a line of %d characters: %s", len([]rune(line)), line)
		}
		if command, is := strings.CutPrefix(line, "    "); is {
			lines = append(lines, strings.TrimSpace(command))
		}
	}
	return lines
}

// TestWhatToTypeNextHeals runs in a shell the commands that the demo proposes. They skip the
// missing event of one account and replay the event of another.
func TestWhatToTypeNextHeals(t *testing.T) {
	withoutServers(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	stayed, ended := make(chan struct{}), make(chan int, 1)
	out := &stopAt{text: "Ctrl-C", stop: sync.OnceFunc(func() { close(stayed) })}
	go func() {
		ended <- clitest.Execute(ctx, append([]string{"demo", "--stay"}, small...), out, io.Discard)
	}()
	select {
	case <-stayed:
	case status := <-ended:
		t.Fatalf("status %d\n%s", status, out.String())
	}
	script := "set -e\n"
	for _, line := range proposedLines(t, out.String()) {
		if !strings.HasPrefix(line, "http") && !strings.HasPrefix(line, "curl") && !strings.HasSuffix(line, " run --listen :0") && line != "Ctrl-C" {
			script += line + "\n"
		}
	}
	if strings.Count(script, "127.0.0.1") != 2 {
		t.Errorf("addresses are there more than once:\n%s", script)
	}
	shell := exec.CommandContext(t.Context(), "bash", "-c", script)
	shell.Env = append(os.Environ(), actAsProjector+"=1")
	said, err := shell.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, script, said)
	}
	clitest.Contains(t, string(said), "10 event", "skipped version", "ALTER TABLE", "1 applied")
	stop()
	if status := <-ended; status != exit.OK {
		t.Errorf("status %d", status)
	}
}

func TestDemoOnGivenServers(t *testing.T) {
	withoutServers(t)
	database, brokers := devtest.Database(t), strings.Join(devtest.Broker(t).Addrs(), ",")
	args := append([]string{"--database-url", database, "--brokers", brokers, "--listen", "127.0.0.1:0"}, small...)
	for range 2 { // the second run finds the files of the first
		status, out, errOut := runDemo(t.Context(), args...)
		if status != exit.OK {
			t.Fatalf("status %d\n%s%s", status, out, errOut)
		}
		if strings.Contains(out, database) {
			t.Error("the page shows the database's URL")
		}
		if !strings.Contains(out, "topics demo-account-events-") || !strings.Contains(out, "Stale accounts: 10\n") {
			t.Errorf("got\n%s", out)
		}
	}
}

// TestDemoFindsSabotage shows that the demo finds a wrong balance, which a trigger in the database
// has written.
func TestDemoFindsSabotage(t *testing.T) {
	withoutServers(t)
	database := devtest.Database(t)
	execSQL(t, database, `
CREATE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.balance := NEW.balance + 1;
    RETURN NEW;
END $$;
CREATE TRIGGER sabotage BEFORE INSERT OR UPDATE ON account_balance
    FOR EACH ROW WHEN (NEW.account_id LIKE '%-00000013') EXECUTE FUNCTION sabotage();`)
	status, out, errOut := runDemo(t.Context(), append([]string{"--database-url", database}, small...)...)
	if status != exit.Failed {
		t.Errorf("status %d, want %d", status, exit.Failed)
	}
	if !regexp.MustCompile(`(?m)^  NO  50 accounts.*: 1 differ\n      demo-[a-z0-9]+-00000013: balance differs$`).MatchString(out) {
		t.Errorf("the page does not name the account:\n%s", out)
	}
	if want := "projector: " + demo.ErrFailed.Error(); !strings.Contains(errOut, want) {
		t.Errorf("stderr is %q, want %q in it", errOut, want)
	}
}

func TestDemoRefusesForeignAccounts(t *testing.T) {
	withoutServers(t)
	database := devtest.Database(t)
	execSQL(t, database, `INSERT INTO account_balance (account_id, balance, version) VALUES ('acc-1', 0, 1)`)
	status, _, errOut := runDemo(t.Context(), append([]string{"--database-url", database}, small...)...)
	if status != exit.Usage || !strings.Contains(errOut, "--database-url (DATABASE_URL): the schema holds accounts") {
		t.Errorf("status %d, stderr %q", status, errOut)
	}
}

func execSQL(t *testing.T, database, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

func TestDemoUsage(t *testing.T) {
	withoutServers(t)
	tests := map[string]string{
		"--accounts=19":                  "--accounts",
		"--events=9999":                  "--events",
		"--events=20000000":              "--events",
		"--partitions=0":                 "--partitions",
		"--partitions=1001":              "--partitions",
		"--seed=-1":                      "--seed",
		"--log-level=loud":               "--log-level",
		"--database-url=postgres://u@:x": "--database-url",
	}
	for arg, flag := range tests {
		status, _, errOut := runDemo(t.Context(), arg)
		if status != exit.Usage || !strings.Contains(errOut, flag) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%s: status %d, stderr %q", arg, status, errOut)
		}
	}
}

// stopAt is a writer that calls stop when it sees a text.
type stopAt struct {
	bytes.Buffer
	text string
	stop func()
}

func (s *stopAt) Write(p []byte) (int, error) {
	n, err := s.Buffer.Write(p)
	if strings.Contains(s.String(), s.text) {
		s.stop()
	}
	return n, err
}

func TestDemoIsInterrupted(t *testing.T) {
	withoutServers(t)
	tests := map[string]struct {
		args   []string
		at     string
		status int
		stderr string
	}{
		"before the check":             {nil, "Stream", exit.Failed, "projector: interrupted before the read model was checked"},
		"before the check, to stay":    {[]string{"--stay"}, "Stream", exit.OK, ""},
		"while it stays, all was well": {[]string{"--stay"}, "Ctrl-C", exit.OK, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			out := &stopAt{text: test.at, stop: stop}
			var errOut bytes.Buffer
			args := append([]string{"demo", "--database-url", devtest.Database(t)}, append(test.args, small...)...)
			if status := clitest.Execute(ctx, args, out, &errOut); status != test.status {
				t.Errorf("status %d, want %d\n%s%s", status, test.status, out.String(), errOut.String())
			}
			if !strings.Contains(errOut.String(), test.stderr) {
				t.Errorf("stderr %q, want %q in it", errOut.String(), test.stderr)
			}
		})
	}
}
