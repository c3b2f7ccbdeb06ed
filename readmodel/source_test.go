package readmodel_test

import (
	"strings"
	"testing"

	"projector/projection"
	"projector/readmodel"
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
	up, _, _ := strings.Cut(string(migration), "-- +goose Down")
	if _, err := pool.Exec(t.Context(), `DROP TABLE projector_source;
		INSERT INTO projector_position (consumer_group, topic, partition, next_offset, judged_until, topic_id, owner, fence, projection) VALUES
			('g', 'events', 0, 1, 1, 'first', 'me', 1, 'account_balance'), ('g', 'events', 1, 1, 1, 'first', 'me', 1, 'account_balance'),
			('s', 'events', 0, 1, 1, 'first', 'me', 1, 'account_statement'), ('g', 'old', 0, 1, 1, 'AAAAAAAAAAAAAAAAAAAAAA==', 'me', 1, 'account_balance');`+up); err != nil {
		t.Fatal(err)
	}
	expect(t, lines(t, pool, `SELECT concat_ws(' ', projection, topic, topic_id) FROM projector_source ORDER BY 1`),
		"account_balance events first\naccount_statement events first")
}
