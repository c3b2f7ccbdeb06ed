//go:build kafka

package e2e_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

// blockEnd is the text that the shell prints after each block of docs/tutorial.md.
const blockEnd = "--- end of block"

// TestQuickStart runs the database step of docs/tutorial.md in a shell, block by block. It uses a
// new PostgreSQL on which nothing is prepared.
func TestQuickStart(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## 3. ")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 8 {
		t.Fatalf("step 3 has %d blocks for a shell, not 8", len(blocks))
	}
	s := newNewcomer(t)
	var shown []string
	for _, block := range blocks {
		if strings.Contains(block[1], "account show") { // a person types this later, when the transaction has certainly ended
			s.await(len(shown))
		}
		shown = append(shown, s.paste(block[1]))
	}
	for block, want := range map[int]string{
		4: `(?s)acc-00000042 \| EUR +\| +10\.25 \| +1 \| open +\| t +\| +2\n.*acc-00000042 +2 +3 +version_gap.*\nbalance +10\.25 EUR\n.*\n\d+/0 +waiting +version_gap +acc-00000042 +3`,
		6: `(?s)\nbalance +108\.75 EUR\nversion +3\n.*\nstale +no\n`,
	} {
		if !regexp.MustCompile(want).MatchString(shown[block]) {
			t.Errorf("block %d prints\n%s\nand not\n%s", block+1, shown[block], want)
		}
	}
}

// newcomer has a shell in a folder like a checkout of the repository, a new PostgreSQL and a Kafka.
type newcomer struct {
	t        testing.TB
	in       io.Writer
	out      *bufio.Reader
	replacer *strings.Replacer // replaces the page's addresses by those of this test
	brokers  []string
	database string // database URL of the superuser
}

func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	cluster, kafka := devtest.Postgres(t), devtest.Broker(t).Addrs()[0]
	home, listen := t.TempDir(), freeAddress(t)
	topic := fmt.Sprintf("quickstart-%d", time.Now().UnixNano())
	s := &newcomer{
		t: t, brokers: []string{kafka}, database: cluster.DatabaseURL("bank"),
		replacer: strings.NewReplacer("localhost:9092", kafka, "localhost:5432", cluster.Addr(), "localhost:8080", listen,
			"KAFKA_TOPIC=account-events", "KAFKA_TOPIC="+topic),
	}
	admin, err := url.Parse(cluster.URL())
	if err != nil {
		t.Fatal("the database's URL cannot be read")
	}
	secret, _ := admin.User.Password()
	s.checkout(home)
	cmd := exec.CommandContext(t.Context(), "bash", "--norc", "-e")
	cmd.Dir = home
	cmd.Env = []string{
		"PATH=" + filepath.Join(home, "path") + ":" + os.Getenv("PATH"), "HOME=" + home, "LC_ALL=C.UTF-8",
		"KAFKA_GROUP=" + topic, "LISTEN_ADDR=" + listen,
		"PGHOST=" + admin.Hostname(), "PGPORT=" + admin.Port(), "PGUSER=" + admin.User.Username(), "PGPASSWORD=" + secret,
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that its background processes end with it
	s.start(cmd)
	return s
}

// checkout fills the folder home with the files and the built program that docs/tutorial.md needs.
// It also adds scripts with the names make and sudo, and Kafka's scripts.
func (s *newcomer) checkout(home string) {
	s.t.Helper()
	path, err := binary()
	if err != nil {
		s.t.Fatal(err)
	}
	root, err := filepath.Abs("..")
	if err != nil {
		s.t.Fatal(err)
	}
	programs := filepath.Join(home, "path")
	for _, dir := range []string{filepath.Join(home, "bin"), programs} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"bin/projector": path, "sql": filepath.Join(root, "sql")} {
		if err := os.Symlink(target, filepath.Join(home, link)); err != nil {
			s.t.Fatal(err)
		}
	}
	for name, script := range map[string]string{
		"make": `test "$*" = build`,                                // does nothing, because the tests have already built the program
		"sudo": `test "$1 $2" = "-u postgres"; shift 2; exec "$@"`, // runs the command; the environment has the user and the server
	} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh -e\n"+script+"\n"), 0o755); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := devstack.WriteKafkaScripts(s.t.Context(), programs); err != nil {
		s.t.Fatal(err)
	}
}

func (s *newcomer) start(cmd *exec.Cmd) {
	s.t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	s.in, s.out = in, bufio.NewReader(out)
}

// paste runs a block and returns its output. A failing command ends the test.
func (s *newcomer) paste(block string) string {
	s.t.Helper()
	if _, err := io.WriteString(s.in, s.replacer.Replace(block)+"\necho '"+blockEnd+"'\n"); err != nil {
		s.t.Fatal(err)
	}
	var printed strings.Builder
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			s.t.Fatalf("a command fails:\n%s\n%s%s", block, printed.String(), line)
		}
		if line == blockEnd+"\n" {
			return printed.String()
		}
		printed.WriteString(line)
	}
}

// await waits until the events of docs/tutorial.md that the given block needs are processed. Before
// the block with index 4, the account must have version 1 and a waiting event. Before the block
// with index 6, all three events must be applied.
func (s *newcomer) await(block int) {
	s.t.Helper()
	w := newWorldOn(s.t, s.brokers, s.database, 0)
	want := map[int]string{4: "1 true", 6: "3 false"}[block]
	await(s.t, "version and stale are "+want, func() string {
		var got string
		err := w.db.QueryRow(s.t.Context(), "SELECT coalesce(version, 0) || ' ' || stale FROM account_balance_current").Scan(&got)
		if err != nil {
			return err.Error()
		}
		if got != want {
			return got
		}
		return ""
	})
}

// freeAddress returns a listen address that was free a moment ago. The commands of docs/tutorial.md
// need the address before the program is started.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
