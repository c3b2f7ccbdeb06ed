package cli

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
	"projector/internal/devstack/devtest"
	"projector/readmodel"
)

// TestWrongUsageRepeatsNoPassword shows that an error message repeats a wrong argument without its
// password. People easily type a connection string in a wrong place.
func TestWrongUsageRepeatsNoPassword(t *testing.T) {
	for _, args := range [][]string{
		{"migrate", "postgres://app:hun@ter2@db:5432/bank"},
		{"migrate", "host=db password=hun@ter2"},
		{"run", "--output=postgres://app:hun@ter2@db:5432/bank"},
		{"lag", "--brokers=app:hun@ter2@kafka:9092"},
	} {
		var stderr bytes.Buffer
		if status := execute(t.Context(), args, &bytes.Buffer{}, &stderr); status != exit.Usage {
			t.Errorf("%v: status %d", args, status)
		}
		if said := stderr.String(); strings.Contains(said, "hun") || strings.Contains(said, "ter2") {
			t.Errorf("%v: %s", args, said)
		}
	}
}

// asProgram is the variable that makes this test binary run as the program, for tests that need a
// separate process.
const asProgram = "PROJECTOR_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	devtest.Main(m, func(ctx context.Context, databaseURL string) error {
		_, err := readmodel.Migrate(ctx, databaseURL)
		return err
	})
}

// execute runs one command line, as main does.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return Main(ctx, args, stdout, stderr, flags.BuildInfo{Version: "dev"})
}

// TestEmptyFiltersAreRefused shows that an empty filter is refused, because a repair with it would
// change more than intended. The same is true for a flag without which a command does something
// else.
func TestEmptyFiltersAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"dlq", "discard", "--reason=x", "--class=", "--yes"},
		{"dlq", "replay", "--account=", "--yes"},
		{"dlq", "replay", "--status", "", "--yes"},
		{"dlq", "list", "--since="},
		{"dlq", "export", "--partition="},
		{"dlq", "list", "--dlq-offset="},
		{"dlq", "replay", "--from-file=", "--reason=x", "--yes"},
		{"dlq", "replay", "--to-topic=", "--yes"},
		{"audit", "verify", "--expect-head="},
		{"resume", "--all", "--through=", "--reason=x", "--yes"},
	} {
		var out, errOut bytes.Buffer
		if status := execute(t.Context(), args, &out, &errOut); status != exit.Usage || !strings.HasPrefix(errOut.String(), "projector: --") {
			t.Errorf("%q: exit status %d, want %d and the flag's name:\n%s", args, status, exit.Usage, errOut.String())
		}
	}
}

// TestARepeatedFilterIsRefused shows that a command does not leave out a value. A list takes all
// values, and a setting such as the URL has its last one.
func TestARepeatedFilterIsRefused(t *testing.T) {
	for flag, args := range map[string][]string{
		"--partition": {"pause", "--partition=1", "--partition=2", "--reason=x", "--yes"},
		"--account":   {"dlq", "discard", "--account=a", "--account=b", "--reason=x", "--yes"},
		"--since":     {"dlq", "list", "--since=1h", "--since=2h"},
	} {
		var out, errOut bytes.Buffer
		if status := execute(t.Context(), args, &out, &errOut); status != exit.Usage || !strings.Contains(errOut.String(), flag+": is given twice") {
			t.Errorf("%q: exit status %d:\n%s", args, status, errOut.String())
		}
	}
	for _, args := range [][]string{
		{"dlq", "discard", "--partition=1", "--partition=2", "--status=open", "--status=open", "--reason=x", "--yes", "--yes", "--brokers=127.0.0.1:1"},
		{"pause", "--all", "--reason=x", "--database-url=postgres://a@127.0.0.1:1/a", "--database-url=postgres://b@127.0.0.1:1/b"},
	} {
		t.Setenv("DATABASE_URL", "postgres://a@127.0.0.1:1/a")
		var out, errOut bytes.Buffer
		if status := execute(t.Context(), args, &out, &errOut); status != exit.Failed || strings.Contains(errOut.String(), "twice") {
			t.Errorf("%q: exit status %d:\n%s", args, status, errOut.String())
		}
	}
}

// TestADatabaseURLMayHaveSpaceAroundIt shows that the whole URL is used. Its last parameter is wrong
// with a line break, and pgx takes a URL for something else if a space precedes it.
func TestADatabaseURLMayHaveSpaceAroundIt(t *testing.T) {
	t.Setenv("DATABASE_URL", " postgres://nobody@127.0.0.1:1/nothing?sslmode=disable\r\n")
	var out, errOut bytes.Buffer
	status := execute(t.Context(), []string{"gaps"}, &out, &errOut)
	if status != exit.Failed || !strings.Contains(errOut.String(), "host=127.0.0.1 port=1 ") {
		t.Errorf("exit status %d:\n%s", status, errOut.String())
	}
}

// TestABlankGroupIsRefused shows that white space is no name of a consumer group, although Kafka
// accepts it.
func TestABlankGroupIsRefused(t *testing.T) {
	t.Setenv("KAFKA_GROUP", " \u00a0\n")
	var out, errOut bytes.Buffer
	status := execute(t.Context(), []string{"run"}, &out, &errOut)
	if status != exit.Usage || !strings.Contains(errOut.String(), "--group (KAFKA_GROUP): is blank; give it a value or leave it out") {
		t.Errorf("exit status %d:\n%s", status, errOut.String())
	}
}

// TestAnEmptyPathIsRefused shows that the name of a file may not be empty, for example because a variable
// of a script is not set. The parser would use the working directory.
func TestAnEmptyPathIsRefused(t *testing.T) {
	for _, name := range []string{"database-password-file", "tls-ca", "sasl-password-file", "read-token-file"} {
		var out, errOut bytes.Buffer
		status := execute(t.Context(), []string{"run", "--sasl-mechanism=MD5", "--" + name + "="}, &out, &errOut)
		if want := "projector: --" + name + ": is empty; give it a value or leave it out\n"; status != exit.Usage || errOut.String() != want {
			t.Errorf("exit status %d: %s", status, errOut.String())
		}
	}
}

// TestATypedFlagTakesPrecedence shows that the variable of a typed flag is not read, even if its
// value is wrong. Without the flag it is an error, which names the variable.
func TestATypedFlagTakesPrecedence(t *testing.T) {
	for name, flag := range map[string]string{
		"FIRST_VERSION": "--first-version=1", "KAFKA_TLS": "--tls=false", "RETRY_MAX": "--retry-max=60s", "PROJECTOR_OUTPUT": "--output=json",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "wrong")
			args := []string{"run", "--sasl-mechanism=MD5"} // the last flag that is checked
			if name == "PROJECTOR_OUTPUT" {
				args = []string{"lag", "--sasl-mechanism=MD5"}
			}
			var out, errOut bytes.Buffer
			status := execute(t.Context(), append(args, flag), &out, &errOut)
			if status != exit.Usage || !strings.Contains(errOut.String(), "--sasl-mechanism (KAFKA_SASL_MECHANISM)") {
				t.Errorf("exit status %d:\n%s", status, errOut.String())
			}
			errOut.Reset()
			status = execute(t.Context(), args, &out, &errOut)
			if status != exit.Usage || strings.Contains(errOut.String(), "--sasl-mechanism") || !strings.Contains(errOut.String(), name) {
				t.Errorf("without the flag: exit status %d:\n%s", status, errOut.String())
			}
		})
	}
}

// TestTheLongestWaitLimitsTheDefault shows that --retry-max may be less than the default of
// --retry-initial. The wrong --sasl-mechanism is checked last.
func TestTheLongestWaitLimitsTheDefault(t *testing.T) {
	var out, errOut bytes.Buffer
	status := execute(t.Context(), []string{"run", "--retry-max=500ms", "--sasl-mechanism=MD5"}, &out, &errOut)
	if status != exit.Usage || !strings.Contains(errOut.String(), "--sasl-mechanism (KAFKA_SASL_MECHANISM)") {
		t.Errorf("exit status %d:\n%s", status, errOut.String())
	}
}

// fullDisk is a file on a disk without space.
type fullDisk struct{}

// Write returns the error of os.File.
func (fullDisk) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "stdout", Err: syscall.ENOSPC}
}

// TestHelpThatCannotBeWritten shows that a full disk under the help is a failure, not wrong usage.
func TestHelpThatCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"run", "--help"}, {"dlq", "replay", "-h"}} {
		var errOut bytes.Buffer
		if status := execute(t.Context(), args, fullDisk{}, &errOut); status != exit.Failed || !strings.Contains(errOut.String(), "no space left") {
			t.Errorf("%v: exit status %d: %s", args, status, errOut.String())
		}
	}
}

// TestAResultThatCannotBeWritten shows that a full disk under the result of a command is a failure,
// in each format of the output.
func TestAResultThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bank.yaml")
	if err := os.WriteFile(file, []byte("eventTypes: {b: ignored}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"version"}, {"version", "--output=json"}, {"completion", "bash"}, {"mapping", "check", file}, {"mapping", "check", file, "--output=json"},
	} {
		var errOut bytes.Buffer
		if status := execute(t.Context(), args, fullDisk{}, &errOut); status != exit.Failed || strings.Count(errOut.String(), "no space left") != 1 {
			t.Errorf("%v: exit status %d: %s", args, status, errOut.String())
		}
	}
}

// TestEmptyEnvironmentIsNone shows that an empty variable counts as unset. The test also sets a
// wrong --sasl-mechanism, which is checked last. If an empty variable were used, its error would be
// reported instead.
func TestEmptyEnvironmentIsNone(t *testing.T) {
	for _, name := range []string{
		"KAFKA_BROKERS", "KAFKA_TOPIC", "PROJECTION", "KAFKA_GROUP", "EVENT_FORMAT", "KAFKA_TLS", "FIRST_VERSION",
		"CURRENCIES", "PARK_LIMIT", "RETRY_INITIAL", "RETRY_MAX", "LOG_LEVEL", "LOG_FORMAT", "LISTEN_ADDR",
	} {
		t.Setenv(name, "")
	}
	var out, errOut bytes.Buffer
	status := execute(t.Context(), []string{"run", "--sasl-mechanism=MD5"}, &out, &errOut)
	if status != exit.Usage || !strings.Contains(errOut.String(), "--sasl-mechanism") {
		t.Errorf("exit status %d:\n%s", status, errOut.String())
	}
}
