package readmodel_test

import (
	"errors"
	"strings"
	"testing"

	"projector/projection"
	"projector/projection/file"
	"projector/readmodel"
	"projector/readmodel/readmodeltest"
	"projector/sql"
)

// A successful claim stores the topic's id, if the topic has one. The stored id stays when the
// position is deleted.
func TestSourcesAreRemembered(t *testing.T) {
	pool := openPool(t)
	claim := func(id, wanted string) {
		t.Helper()
		p := readmodel.Partition{Projection: readmodel.BalanceName, Group: "g", Topic: "events"}
		_, err := readmodel.ClaimPosition(t.Context(), pool, p, projection.Claim{Owner: "me", TopicID: id, Committed: projection.NoOffset})
		if wanted == "" && err != nil || wanted != "" && (err == nil || !strings.Contains(err.Error(), wanted)) {
			t.Errorf("claimed with id %q: %v", id, err)
		}
	}
	for _, unknown := range projection.UnknownTopicIDs() {
		claim(unknown, "")
	}
	claim("first", "")
	claim("first", "")
	claim("second", "recreated")
	if _, err := pool.Exec(t.Context(), "DELETE FROM projector_position"); err != nil {
		t.Fatal(err)
	}
	claim("second", "")
	ids, err := readmodel.LoadSourceIDs(t.Context(), pool, readmodel.BalanceName, "events")
	if err != nil || strings.Join(ids, ",") != "first,second" {
		t.Errorf("%v, %v", ids, err)
	}
}

// In a database that already has positions, the migration reads the topics from these positions.
func TestSourcesAreTakenFromPositions(t *testing.T) {
	pool := openPool(t)
	migration, err := sql.Migrations.ReadFile("migrations/00006_projector_source.sql")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `DROP TABLE projector_source;
		INSERT INTO projector_position (consumer_group, topic, partition, next_offset, judged_until, topic_id, owner, fence, projection) VALUES
			('g', 'events', 0, 1, 1, 'first', 'me', 1, 'account_balance'), ('g', 'events', 1, 1, 1, 'first', 'me', 1, 'account_balance'),
			('s', 'events', 0, 1, 1, 'first', 'me', 1, 'account_statement'), ('g', 'old', 0, 1, 1, 'AAAAAAAAAAAAAAAAAAAAAA==', 'me', 1, 'account_balance');`+string(migration)); err != nil {
		t.Fatal(err)
	}
	expect(t, lines(t, pool, `SELECT concat_ws(' ', projection, topic, topic_id) FROM projector_source ORDER BY 1`),
		"account_balance events first\naccount_statement events first")
}

// After a topic was recreated, its positions may be 0 again. The rows of the projection still come
// from the earlier topic of this name, so neither another topic nor another mapping may be used.
func TestRowsOfARecreatedTopicAreKnown(t *testing.T) {
	pool := openPool(t)
	check := func() (topic, mapping error) {
		return readmodel.CheckTopic(t.Context(), pool, readmodel.BalanceName, "other"),
			readmodel.CheckMapping(t.Context(), pool, readmodel.BalanceName, readmodeltest.Mapping("two"))
	}
	_, err := pool.Exec(t.Context(), `INSERT INTO projector_source (projection, topic, topic_id) VALUES ('account_balance', 'events', 'second');
		INSERT INTO projector_position (consumer_group, topic, partition, next_offset, judged_until, topic_id, owner, fence, projection, mapping)
		VALUES ('g', 'events', 0, 0, 0, 'second', 'me', 1, 'account_balance', 'one')`)
	if err != nil {
		t.Fatal(err)
	}
	if topic, mapping := check(); topic != nil || mapping != nil {
		t.Errorf("nothing was processed: %v, %v", topic, mapping)
	}
	if _, err := pool.Exec(t.Context(), "INSERT INTO projector_source (projection, topic, topic_id) VALUES ('account_balance', 'events', 'first')"); err != nil {
		t.Fatal(err)
	}
	var changed *readmodel.MappingChangedError
	topic, mapping := check()
	if topic == nil || !strings.Contains(topic.Error(), "came from topic events") || !errors.As(mapping, &changed) {
		t.Errorf("the topic was recreated: %v, %v", topic, mapping)
	}
	stored := "SELECT concat_ws(' ', mapping, fence) FROM projector_position"
	if err := readmodel.KeepMapping(t.Context(), pool, readmodel.BalanceName, readmodeltest.Mapping("two"), false); !errors.As(err, &changed) {
		t.Errorf("kept: %v", err)
	}
	expect(t, lines(t, pool, stored), "one 1")
	if err := readmodel.KeepMapping(t.Context(), pool, readmodel.BalanceName, readmodeltest.Mapping("two"), true); err != nil {
		t.Error(err)
	}
	expect(t, lines(t, pool, stored), "two 2")
}

// After a topic was recreated, the rows of a custom projection still come from the text of the file
// that read the earlier topic, so another text is refused.
func TestTheFileOfARecreatedTopicIsKnown(t *testing.T) {
	pool := openPool(t)
	_, err := pool.Exec(t.Context(), `INSERT INTO projector_source (projection, topic, topic_id) VALUES ('points', 'events', 'second');
		INSERT INTO projector_position (consumer_group, topic, partition, next_offset, judged_until, topic_id, owner, fence, projection)
		VALUES ('g', 'events', 0, 0, 0, 'second', 'me', 1, 'points')`)
	if err != nil {
		t.Fatal(err)
	}
	ctx := readmodel.WithReader(t.Context(), func() string { return " --projection-file=points.sql" })
	keep := func(sha256 string) error {
		p := &file.Projection{Name: "points", SHA256: sha256, Mode: file.Once}
		return errors.Join(readmodel.KeepFile(ctx, pool, p, false), readmodel.CheckFile(ctx, pool, p))
	}
	for _, text := range []string{"one", "two"} {
		if err := keep(text); err != nil {
			t.Errorf("nothing was processed: %v", err)
		}
	}
	if _, err := pool.Exec(t.Context(), "INSERT INTO projector_source (projection, topic, topic_id) VALUES ('points', 'events', 'first')"); err != nil {
		t.Fatal(err)
	}
	var changed *readmodel.FileChangedError
	if err := keep("one"); !errors.As(err, &changed) || !strings.Contains(err.Error(), "`projector rebuild --projection-file=points.sql --yes`") {
		t.Errorf("the topic was recreated: %v", err)
	}
	if err := keep("two"); err != nil {
		t.Errorf("the text of the rows: %v", err)
	}
}
