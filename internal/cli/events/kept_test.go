package events_test

import (
	"os"
	"path/filepath"
	"testing"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
)

// The function stored returns a function that waits until the stored mapping of each position
// contains a text.
func stored(s *clitest.Stage, says string) func() {
	return func() {
		s.Await("SELECT coalesce(bool_and(mapping LIKE '%' || $1 || '%'), false) FROM projector_position", says)
	}
}

// mappingFile makes all commands use a mapping file. It returns the file's path and a function that
// writes the file.
func mappingFile(t *testing.T) (path string, write func(text string)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "bank.yaml")
	t.Setenv("EVENT_MAPPING", path)
	return path, func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAChangedMappingIsRefused shows that commands refuse another mapping than the one with which
// the rows were written. They accept the new mapping after --accept-changed-mapping or a rebuild.
func TestAChangedMappingIsRefused(t *testing.T) {
	s := clitest.NewStage(t)
	path, write := mappingFile(t)
	balance := func(want string) {
		t.Helper()
		clitest.Equal(t, s.Text("SELECT string_agg(account_id || ' ' || balance, ', ' ORDER BY account_id) FROM account_balance"), want)
	}
	const minor, scaled = "fields: {amount: {unit: minor}}\n", "fields: {amount: {scale: 3}}\n"
	write(minor)
	s.Produce(clitest.EventOf("a", 1, "1050"), clitest.EventOf("a", 3, "1000"))
	s.Consuming(nil)
	balance("a 10.50")

	write("# the same\neventTypes: {CardIssued: ignored}\n" + minor)
	s.Consuming(stored(s, "CardIssued"))

	write(scaled)
	remedy := []string{"--mapping (EVENT_MAPPING)", "--accept-changed-mapping", "projector rebuild"}
	clitest.Contains(t, s.Refused(exit.Failed, "run", "--listen=127.0.0.1:0"), remedy...)
	clitest.Contains(t, s.Refused(exit.Failed, "dlq", "replay", "--reason=x", "--yes"), remedy...)
	clitest.Contains(t, s.Refused(exit.Failed, "account", "skip", "a", "--version=2", "--reason=x", "--yes"), remedy...)
	ledger := filepath.Join(t.TempDir(), "ledger.csv")
	if err := os.WriteFile(ledger, []byte("account_id,version,balance,currency\na,2,1,EUR\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	clitest.Contains(t, s.Refused(exit.Failed, "open", "--ledger="+ledger, "--reason=x", "--yes"), remedy...)
	clitest.Contains(t, s.Refused(exit.Failed, "open", "--ledger="+ledger, "--reason=x"), remedy...)
	t.Setenv("EVENT_MAPPING", "")
	clitest.Contains(t, s.Refused(exit.Failed, "run", "--listen=127.0.0.1:0"), remedy...)
	t.Setenv("EVENT_MAPPING", path)

	s.Must("rebuild", "--yes")
	balance("a 1.05")
	s.Consuming(nil) // with the new mapping
	write(minor)
	clitest.Contains(t, s.Refused(exit.Failed, "run", "--listen=127.0.0.1:0"), remedy...)

	t.Setenv("PROJECTOR_ACCEPT_CHANGED_MAPPING", "true")
	s.Consuming(stored(s, "minor units"))
	t.Setenv("PROJECTOR_ACCEPT_CHANGED_MAPPING", "")
	s.Consuming(nil)
	balance("a 1.05")
}

// TestAnotherFirstVersionIsRefused shows that commands refuse another --first-version than the one
// with which the rows were written. Before the first event is processed, any value is accepted.
func TestAnotherFirstVersionIsRefused(t *testing.T) {
	s := clitest.NewStage(t)
	s.Consuming(stored(s, `"first_version":1`))
	t.Setenv("FIRST_VERSION", "2")
	s.Consuming(stored(s, `"first_version":2`))
	t.Setenv("FIRST_VERSION", "1")
	s.Produce(clitest.EventOf("a", 0, `"1"`), clitest.EventOf("a", 1, `"2"`), clitest.EventOf("b", 0, `"4"`), clitest.EventOf("b", 1, `"8"`), clitest.EventOf("b", 3, `"16"`))
	s.Consuming(nil)
	clitest.Contains(t, s.Must("dlq", "show", "0/0"), "--first-version (FIRST_VERSION)", "rebuild")

	t.Setenv("FIRST_VERSION", "0")
	remedy := []string{"--first-version=1 (FIRST_VERSION)", "--accept-changed-mapping"}
	ofTopic := append([]string{"projector rebuild --topic=" + s.Topic + " --first-version=0 --yes"}, remedy...)
	ofProjection := append([]string{"projector rebuild --projection=account_balance --first-version=0 --yes"}, remedy...)
	clitest.Contains(t, s.Refused(exit.Failed, "run", "--listen=127.0.0.1:0"), ofTopic...)
	clitest.Contains(t, s.Refused(exit.Failed, "dlq", "replay", "--reason=x", "--yes"), ofTopic...)
	clitest.Contains(t, s.Refused(exit.Failed, "account", "skip", "b", "--version=2", "--reason=x", "--yes"), ofProjection...)
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--partial", "--yes"), "--first-version=1 (FIRST_VERSION)", "nothing was changed")
	s.Must("rebuild", "--yes")
	const balances = "SELECT string_agg(concat_ws(' ', account_id, balance, waiting_for_version), ', ' ORDER BY account_id) FROM account_balance_current"
	clitest.Equal(t, s.Text(balances), "a 3.00, b 12.00 2")
	s.Consuming(nil)

	t.Setenv("FIRST_VERSION", "1")
	clitest.Contains(t, s.Refused(exit.Failed, "run", "--listen=127.0.0.1:0"), "--first-version=0 (FIRST_VERSION)")
	t.Setenv("PROJECTOR_ACCEPT_CHANGED_MAPPING", "true")
	s.Consuming(stored(s, `"first_version":1`))
}

// Positions that an earlier release has stored contain no first version of the accounts. In this
// case, any --first-version is accepted and stored.
func TestAFirstVersionThatIsNotStoredIsAccepted(t *testing.T) {
	s := clitest.NewStage(t)
	t.Setenv("FIRST_VERSION", "0")
	s.Produce(clitest.EventOf("a", 0, `"1"`))
	s.Consuming(nil)
	s.Exec("UPDATE projector_position SET mapping = '{}'")
	s.Consuming(stored(s, `"first_version":0`))
	t.Setenv("FIRST_VERSION", "1")
	clitest.Contains(t, s.Refused(exit.Failed, "run", "--listen=127.0.0.1:0"), "--first-version=0 (FIRST_VERSION)")
}

// Positions that an earlier release has stored contain no mapping. In this case, any mapping is
// accepted and stored.
func TestAnUnknownMappingIsAccepted(t *testing.T) {
	s := clitest.NewStage(t)
	s.Produce(clitest.EventOf("a", 1, `"1"`))
	s.Consuming(nil)
	s.Exec("UPDATE projector_position SET mapping = NULL")
	s.UseMapping("fields: {amount: {type: number}}\n")
	s.Consuming(stored(s, "number"))
	t.Setenv("EVENT_MAPPING", "")
	clitest.Contains(t, s.Refused(exit.Failed, "run", "--listen=127.0.0.1:0"), "--accept-changed-mapping")
}

// TestARebuildStoresAMappingOnlyForAllRows shows that a rebuild stores a new mapping only if it has
// computed all rows with this mapping, and only while consumers cannot write. The rebuild raises
// the fence of the positions even if it changes no row, so that consumers with the old mapping
// cannot write.
func TestARebuildStoresAMappingOnlyForAllRows(t *testing.T) {
	s := clitest.NewStage(t)
	_, write := mappingFile(t)
	keeps := func(says string) {
		t.Helper()
		clitest.Equal(t, s.Text("SELECT (mapping LIKE '%"+says+"%')::text FROM projector_position WHERE projection = 'account_balance'"), "true")
	}
	write("fields: {amount: {unit: minor}, correlationId: one}\n")
	s.Produce(clitest.EventOf("a", 1, "1050"))
	s.Consuming(nil)
	s.Exec("INSERT INTO account_balance (account_id, currency, balance, version) VALUES ('ghost', 'EUR', 1, 1)")
	write("fields: {amount: {unit: minor}, correlationId: two}\n") // no row differs
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--yes"), "EVENT_MAPPING", "no event of 1 of them", "--remove", "nothing was changed")
	keeps("one")
	fence := "SELECT sum(fence)::text FROM projector_position WHERE projection = 'account_balance'"
	s.Exec("DELETE FROM account_balance WHERE account_id = 'ghost'")
	before := s.Text(fence)
	clitest.Contains(t, s.Must("rebuild"), "would replace the stored mapping", "nothing was changed")
	keeps("one")
	clitest.Contains(t, s.Must("rebuild", "--yes"), "the stored mapping was replaced")
	keeps("two")
	clitest.Equal(t, s.Text("SELECT string_agg(reason, ', ') FROM dlq_action WHERE action = 'rebuild'"),
		"account_balance: the mapping or the projection file was replaced, and no row differs")
	clitest.Contains(t, s.Must("rebuild", "--yes"), "0 accounts inserted or replaced") // there is nothing left to do
	if s.Text(fence) == before {
		t.Error("the mapping was stored while consumers could go on")
	}

	t.Setenv("PROJECTION", "account_statement")
	s.Consuming(nil)
	write("fields: {amount: {unit: minor}, correlationId: three}\n")
	clitest.Contains(t, s.Refused(exit.Failed, "rebuild", "--partial", "--yes"), "--partial makes only some of them again")
}

// TestTwoMappingsAtAFirstStart shows that an instance writes nothing if another instance has
// started later and stored a different mapping.
func TestTwoMappingsAtAFirstStart(t *testing.T) {
	s := clitest.NewStage(t)
	_, write := mappingFile(t)
	write("fields: {amount: {unit: minor}}\n")
	first := s.Running()
	s.Await("SELECT count(*) = 1 FROM projector_position WHERE fence > 0")
	write("fields: {amount: {scale: 3}}\n")
	second := s.Running()
	s.Await("SELECT bool_and(mapping NOT LIKE '%minor units%') FROM projector_position")
	s.Produce(clitest.EventOf("a", 1, "1050"))
	first.AwaitUnready("--accept-changed-mapping")
	clitest.Equal(t, s.Text("SELECT count(*)::text FROM account_balance"), "0")
	first.Stop("")
	s.Await("SELECT next_offset = 1 FROM projector_position")
	clitest.Equal(t, s.Text("SELECT balance::text FROM account_balance"), "1.05")
	second.Stop("")
}
