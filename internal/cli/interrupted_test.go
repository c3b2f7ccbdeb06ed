package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"projector/internal/cli/exit"
	"projector/internal/cli/flags"
)

// TestEveryCommandSaysWhatAnInterruptionChanged interrupts commands before they change anything.
// These are the commands that use a server, except run and demo.
func TestEveryCommandSaysWhatAnInterruptionChanged(t *testing.T) {
	t.Setenv("DATABASE_URL", "postgres://nobody@127.0.0.1:1/none?sslmode=disable")
	t.Setenv("KAFKA_BROKERS", "127.0.0.1:1")
	folder := t.TempDir()
	ledger, file := filepath.Join(folder, "ledger.csv"), filepath.Join(folder, "debits.sql")
	for path, text := range map[string]string{
		ledger: "account_id,version,balance,currency\na,1,1.00,EUR\n",
		file:   "-- projection: debits\n-- mode: once\n-- types: FundsDebited\nSELECT 1 FROM new_events;\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := map[string][]string{
		"dlq show": {"0/0"}, "dlq discard": {"--reason=x"}, "account show": {"a"}, "account statement": {"a"},
		"account skip": {"a", "--version=1", "--reason=x"}, "account unskip": {"a", "--version=1", "--reason=x"},
		"gaps fetch":   {"--outbox-url=postgres://nobody@127.0.0.1:1/none", "--outbox-query=SELECT $1::text[], $2::bigint[]", "--reason=x"},
		"position set": {"--all", "--start", "--reason=x"}, "position remove": {"--group=x", "--reason=x"},
		"pause": {"--all", "--reason=x"}, "resume": {"--all", "--reason=x"},
		"open": {"--ledger=" + ledger, "--reason=x"}, "verify": {"--ledger=" + ledger}, "requests show": {"1"},
		"approve": {"1", "--reason=x"}, "reject": {"1", "--reason=x"}, "projection check": {file},
	}
	others := map[string]string{ // these exit with 0, use no server or print another text
		"run": "", "demo": "", "completion": "", "version": "", "mapping check": "",
		"migrate up": "projector: interrupted; `projector migrate status` lists what was done\n",
		"approve":    "projector: interrupted; `projector requests show ID` says whether the request was decided\n",
		"reject":     "projector: interrupted; `projector requests show ID` says whether the request was decided\n",
	}
	k, err := newParser(nil, flags.BuildInfo{})
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, leaf := range k.Model.Leaves(true) {
		name := strings.TrimPrefix(leaf.FullPath(), "projector ")
		want, other := others[name]
		switch {
		case !other:
			want = "projector: interrupted, nothing was changed\n"
		case want == "":
			continue
		}
		tried++
		ctx, interrupt := context.WithCancel(t.Context())
		interrupt()
		var said bytes.Buffer
		status := Main(ctx, append(strings.Fields(name), args[name]...), &bytes.Buffer{}, &said, flags.BuildInfo{})
		if status != exit.Failed || !strings.HasSuffix(said.String(), want) {
			t.Errorf("%s: status %d: %s", name, status, said.String())
		}
	}
	if tried < 28 {
		t.Errorf("%d commands", tried)
	}
}
