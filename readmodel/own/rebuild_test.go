package own_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/errclass"
	"projector/internal/session"
	"projector/projection/event"
	"projector/projection/file"
	"projector/readmodel"
	"projector/readmodel/own"
	"projector/readmodel/readmodeltest"
	"projector/readmodel/rebuild"
	"projector/readmodel/repair"
)

// The function rebuilt rebuilds the tables of a projection from the log. It returns how many rows
// were replaced or added, and how many were removed.
func rebuilt(t *testing.T, pool *pgxpool.Pool, p file.Projection, log []string) (replaced, removed int64, err error) {
	t.Helper()
	return rebuiltAs(t, pool, p, &log, rebuild.SwapOptions{Topic: "events", Actor: "me", Remove: true}, func() {})
}

// reader are the flags of the process that rebuilds. The commands that its errors propose have them.
const reader = " --topic=bank"

// pauses is the command that an error proposes when consumers go on during a rebuild.
const pauses = "`projector pause --all" + reader + " --reason=rebuild --yes`"

// rebuiltAs does the same as rebuilt, with other options and with an action between the comparison
// and the swap.
func rebuiltAs(t *testing.T, pool *pgxpool.Pool, p file.Projection, log *[]string, opts rebuild.SwapOptions, between func()) (replaced, removed int64, err error) {
	t.Helper()
	shadow, proj, err := openShadow(t, pool, p)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		if err := shadow.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	f := feederOf(t, p, proj)
	failed := error(nil)
	catchUp := func(_ context.Context, positions []rebuild.TopicPosition) error {
		end := positions[0].Next
		for f.next < end && failed == nil {
			switch failed = f.try((*log)[f.next:end]); {
			case failed == nil:
				f.next = end
			case errors.Is(failed, session.ErrAgain):
				failed = nil
				f.claim()
			}
		}
		return failed
	}
	report, err := shadow.Compare(t.Context(), rebuild.CompareOptions{Topic: "events", List: 100}, catchUp)
	if err != nil {
		return 0, 0, err
	}
	if report.Different() == 0 {
		return 0, 0, nil
	}
	between()
	done, err := shadow.Swap(readmodel.WithReader(t.Context(), func() string { return reader }), opts, catchUp)
	return done.Replaced, done.Removed, err
}

// openShadow returns the tables of a rebuild and the projection that fills them.
func openShadow(t *testing.T, pool *pgxpool.Pool, p file.Projection) (*rebuild.Shadow, session.Projection, error) {
	t.Helper()
	shadow, err := rebuild.OpenShadow(t.Context(), pool, own.Definition(p), 100, 0)
	if err != nil {
		return nil, nil, err
	}
	run := readmodel.RunConfig{Formats: event.Always(formatOf(p)), FirstVersion: 1, CacheBytes: func() int { return 1 << 20 }}
	proj := shadow.Open(run, "events", 0)
	return shadow, proj, nil
}

// keptAndDoubled returns a projection that was last run from this text, and the same projection by
// another text, in which each event counts twice.
func keptAndDoubled(t *testing.T, pool *pgxpool.Pool, text string) (old, doubled file.Projection) {
	t.Helper()
	old, doubled = parse(t, text), parse(t, strings.Replace(text, "count(*)", "2 * count(*)", 1))
	if err := readmodel.KeepFile(t.Context(), pool, &old, false); err != nil {
		t.Fatal(err)
	}
	return old, doubled
}

// A rebuild with another SQL text may replace the rows only if no consumer continued with the old
// text during the rebuild.
func TestARebuildByAnotherTextWaitsForTheOldOne(t *testing.T) {
	t.Parallel()
	pool := stage(t)
	execute(t, pool, "DROP TABLE seen; CREATE TABLE seen (event_id text PRIMARY KEY, \"offset\" bigint)")
	text := strings.Replace(fmt.Sprintf(loyalty, file.Once), "-- types", "-- tables: loyalty, seen\n-- types", 1)
	old, doubled := keptAndDoubled(t, pool, text)
	log := []string{points("a", 1, 5), points("b", 1, 7)}
	f := feed(t, pool, old)
	f.consume(log)
	opts := rebuild.SwapOptions{Topic: "events", Actor: "me", File: &doubled}
	query := "SELECT account_id, events FROM loyalty ORDER BY account_id"

	_, _, err := rebuiltAs(t, pool, doubled, &log, opts, func() {
		log = append(log, points("c", 1, 1))
		f.consume(log)
	})
	if !errors.Is(err, rebuild.ErrOldTextRuns) || !strings.Contains(errclass.Safe(err), pauses) {
		t.Errorf("a consumer has gone on: %v", err)
	}
	same(t, "rows", rows(t, pool, query), []string{"a 1", "b 1", "c 1"})
	if err := readmodel.CheckFile(t.Context(), pool, &old); err != nil {
		t.Errorf("the old text: %v", err)
	}

	if _, _, err := rebuiltAs(t, pool, doubled, &log, opts, func() {}); err != nil {
		t.Error(err)
	}
	same(t, "rows", rows(t, pool, query), []string{"a 2", "b 2", "c 2"})
	if err := readmodel.CheckFile(t.Context(), pool, &doubled); err != nil {
		t.Errorf("the new text: %v", err)
	}
}

// An account that a person has changed since the rebuild began is left alone. Its rows would then come
// from the old text, so the rebuild with another text is refused.
func TestARebuildByAnotherTextLeavesNoAccountAlone(t *testing.T) {
	t.Parallel()
	pool := stage(t)
	text, _, _ := strings.Cut(strings.Replace(fmt.Sprintf(loyalty, file.Ordered), "-- types", "-- tables: loyalty\n-- types", 1), "INSERT INTO seen")
	old, doubled := keptAndDoubled(t, pool, text)
	log := []string{points("a", 1, 5), points("b", 1, 7), points("b", 3, 1)}
	feed(t, pool, old).consume(log)
	opts := rebuild.SwapOptions{Topic: "events", Actor: "me", File: &doubled}
	_, _, err := rebuiltAs(t, pool, doubled, &log, opts, func() {
		skip := repair.Skip{AccountID: "b", Version: 2, Actor: "me", Reason: "lost"}
		if _, err := replayer(pool, old).(*repair.Repair).Skip(t.Context(), skip); err != nil {
			t.Fatal(err)
		}
	})
	if !errors.Is(err, rebuild.ErrRepairedSince) {
		t.Errorf("an account was changed: %v", err)
	}
	same(t, "rows", rows(t, pool, "SELECT account_id, events FROM loyalty ORDER BY account_id"), []string{"a 1", "b 2"})
	if err := readmodel.CheckFile(t.Context(), pool, &old); err != nil {
		t.Errorf("the old text: %v", err)
	}
}

// The same holds for an account that is ahead of the topic since the comparison. Here it has passed an
// event that the rebuilt account waits at.
func TestARebuildByAnotherTextLeavesNoAccountAhead(t *testing.T) {
	t.Parallel()
	pool := stage(t)
	execute(t, pool, "ALTER TABLE loyalty ADD CHECK (points < 50)")
	text, _, _ := strings.Cut(strings.Replace(fmt.Sprintf(loyalty, file.Ordered), "-- types", "-- tables: loyalty\n-- types", 1), "INSERT INTO seen")
	old, doubled := keptAndDoubled(t, pool, text)
	log := []string{points("a", 1, 5), points("a", 2, 60), points("b", 1, 7)}
	feed(t, pool, old).consume(log)
	opts := rebuild.SwapOptions{Topic: "events", Actor: "me", File: &doubled}
	_, _, err := rebuiltAs(t, pool, doubled, &log, opts, func() {
		execute(t, pool, "UPDATE projection_account SET version = 2 WHERE account_id = 'a'")
	})
	if !strings.Contains(errclass.Safe(err), "would be left alone") {
		t.Errorf("an account is ahead: %v", err)
	}
	same(t, "rows", rows(t, pool, "SELECT account_id, events FROM loyalty ORDER BY account_id"), []string{"a 1", "b 1"})
	if err := readmodel.CheckFile(t.Context(), pool, &old); err != nil {
		t.Errorf("the old text: %v", err)
	}
}

func TestARebuildPutsOwnTablesRight(t *testing.T) {
	t.Parallel()
	pool := stage(t)
	execute(t, pool, "DROP TABLE seen; CREATE TABLE seen (event_id text PRIMARY KEY, \"offset\" bigint)")
	text := strings.Replace(fmt.Sprintf(loyalty, file.Once), "-- types", "-- tables: loyalty, seen\n-- types", 1)
	p := parse(t, text)
	log := []string{points("a", 1, 5), points("b", 1, 7), points("a", 2, 1), points("c", 1, 3)}
	f := feed(t, pool, p)
	f.consume(log)

	want := []string{"a 6 2", "b 7 1", "c 3 1"}
	query := "SELECT account_id, points, events FROM loyalty ORDER BY account_id"
	if replaced, removed, err := rebuilt(t, pool, p, log); replaced+removed != 0 || err != nil {
		t.Errorf("what is right: %d replaced, %d removed, %v", replaced, removed, err)
	}
	execute(t, pool, `UPDATE loyalty SET points = 100 WHERE account_id = 'a'; DELETE FROM loyalty WHERE account_id = 'b';
		INSERT INTO loyalty VALUES ('x', 1, 1, ''); DELETE FROM seen WHERE event_id = 'a-1'`)
	if replaced, removed, err := rebuilt(t, pool, p, log); replaced != 3 || removed != 1 || err != nil {
		t.Errorf("%d replaced, %d removed, %v", replaced, removed, err)
	}
	same(t, "rows", rows(t, pool, query), want)
	same(t, "seen", rows(t, pool, "SELECT count(*) FROM seen"), []string{"4"})

	f.claim() // the consumer continues
	log = append(log, points("b", 2, 1))
	f.consume(log)
	same(t, "rows", rows(t, pool, query), []string{"a 6 2", "b 8 2", "c 3 1"})

	// If the file does not name a table, the SQL would write to the live table instead of its
	// shadow table.
	for name, wrong := range map[string]string{
		"not named":       strings.Replace(text, "loyalty, seen", "loyalty", 1),
		"with its schema": strings.Replace(text, "INSERT INTO seen", "INSERT INTO public.seen", 1),
	} {
		execute(t, pool, "UPDATE loyalty SET points = 100 WHERE account_id = 'a'")
		if _, _, err := rebuilt(t, pool, parse(t, wrong), log); err == nil || !strings.Contains(err.Error(), "-- tables:") {
			t.Errorf("%s: %v", name, err)
		}
	}
	same(t, "seen", rows(t, pool, "SELECT count(*) FROM seen"), []string{"5"})
}

// A rebuild compares all digits of a floating-point number, even if the login shows only one of them.
func TestARebuildComparesAllDigits(t *testing.T) {
	t.Parallel()
	admin := stage(t)
	execute(t, admin, `DROP TABLE seen; CREATE TABLE seen (event_id text PRIMARY KEY, "offset" bigint);
		ALTER TABLE loyalty ALTER points TYPE float8;
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET extra_float_digits = -15', current_database()); END $$`)
	pool := readmodeltest.OpenPoolAt(t, admin.Config().ConnString())
	p := parse(t, strings.Replace(fmt.Sprintf(loyalty, file.Once), "-- types", "-- tables: loyalty, seen\n-- types", 1))
	log := []string{points("a", 1, 5)}
	feed(t, pool, p).consume(log)
	execute(t, pool, "UPDATE loyalty SET points = 5.25")
	if replaced, removed, err := rebuilt(t, pool, p, log); replaced != 1 || removed != 0 || err != nil {
		t.Errorf("%d replaced, %d removed, %v", replaced, removed, err)
	}
	same(t, "rows", rows(t, admin, "SELECT account_id, points FROM loyalty"), []string{"a 5"})
}

// Another mapping is stored only if no consumer continues with the old mapping.
func TestARebuildByAnotherMappingWaitsForTheOldOne(t *testing.T) {
	t.Parallel()
	pool := stage(t)
	execute(t, pool, "DROP TABLE seen; CREATE TABLE seen (event_id text PRIMARY KEY, \"offset\" bigint)")
	p := parse(t, strings.Replace(fmt.Sprintf(loyalty, file.Once), "-- types", "-- tables: loyalty, seen\n-- types", 1))
	log := []string{points("a", 1, 5)}
	f := feed(t, pool, p)
	f.consume(log)
	execute(t, pool, "UPDATE projector_position SET mapping = 'old'")
	execute(t, pool, "UPDATE loyalty SET events = 9") // the row has a value that the old mapping would have made
	opts := rebuild.SwapOptions{Topic: "events", Actor: "me", Mapping: readmodeltest.Mapping("new")}
	stored := "SELECT mapping FROM projector_position"

	_, _, err := rebuiltAs(t, pool, p, &log, opts, func() {
		log = append(log, points("b", 1, 1))
		f.consume(log)
	})
	if !errors.Is(err, rebuild.ErrOldMappingRuns) || !strings.Contains(errclass.Safe(err), pauses) {
		t.Errorf("a consumer has continued: %v", err)
	}
	same(t, "mapping", rows(t, pool, stored), []string{"old"})

	if _, _, err := rebuiltAs(t, pool, p, &log, opts, func() {}); err != nil {
		t.Error(err)
	}
	same(t, "mapping", rows(t, pool, stored), []string{"new"})
}

// PostgreSQL refuses to write a column that is GENERATED ALWAYS AS IDENTITY. A rebuild reports this before
// it reads the topic.
func TestARebuildRefusesAColumnThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	pool := stage(t)
	execute(t, pool, "CREATE TABLE numbered (account_id text PRIMARY KEY, \"No\" bigint GENERATED ALWAYS AS IDENTITY)")
	p := parse(t, "-- projection: numbered\n-- mode: once\n-- tables: numbered\n-- types: PointsEarned\n"+
		"INSERT INTO numbered SELECT account_id FROM new_events ON CONFLICT DO NOTHING;\n")
	log := []string{points("a", 1, 5), points("b", 1, 1)}
	feed(t, pool, p).consume(log)
	execute(t, pool, "DELETE FROM numbered WHERE account_id = 'a'")
	_, _, err := rebuilt(t, pool, p, log)
	if table, is := errors.AsType[*rebuild.TableError](err); !is || !strings.Contains(table.Error(), `ALTER TABLE numbered ALTER "No" DROP IDENTITY`) {
		t.Errorf("%v", err)
	}
	execute(t, pool, `ALTER TABLE numbered ALTER "No" DROP IDENTITY, ALTER "No" DROP NOT NULL; UPDATE numbered SET "No" = NULL`)
	if replaced, removed, err := rebuilt(t, pool, p, log); replaced != 1 || removed != 0 || err != nil {
		t.Errorf("%d replaced, %d removed, %v", replaced, removed, err)
	}
}

// The account and the version in the key of a custom table may have any type.
func TestARebuildReadsKeysOfAnyType(t *testing.T) {
	t.Parallel()
	pool := stage(t)
	execute(t, pool, "CREATE TABLE numbered (account_id bigint, version text, PRIMARY KEY (account_id, version))")
	p := parse(t, "-- projection: numbered\n-- mode: once\n-- tables: numbered\n-- types: PointsEarned\n"+
		"INSERT INTO numbered SELECT account_id::bigint, 'v' || version FROM new_events;\n")
	log := []string{points("7", 1, 5), points("7", 2, 1)}
	f := feed(t, pool, p)
	f.consume(log)
	execute(t, pool, "DELETE FROM numbered WHERE version = 'v1'; INSERT INTO numbered VALUES (8, 'v1')")
	if replaced, removed, err := rebuilt(t, pool, p, log); replaced != 1 || removed != 1 || err != nil {
		t.Errorf("%d replaced, %d removed, %v", replaced, removed, err)
	}
	same(t, "rows", rows(t, pool, "SELECT account_id, version FROM numbered ORDER BY 2"), []string{"7 v1", "7 v2"})
}
