package own_test

import (
	"fmt"
	"strings"
	"testing"

	"projector/projection/file"
	"projector/readmodel/rebuild"
)

const addresses = `-- projection: addresses
-- mode: %s
-- types: PointsEarned, AddressRemoved
-- tables: address
WITH removed AS (DELETE FROM address a USING new_events e WHERE e.event_type = 'AddressRemoved' AND a.account_id = e.account_id)
INSERT INTO address SELECT account_id, data->>'points' FROM new_events WHERE event_type = 'PointsEarned'
ON CONFLICT (account_id) DO UPDATE SET street = EXCLUDED.street;
`

// In TestARemovedAddressStaysRemoved, the comparison finds that a row is missing in the live table.
// Then an event removes this row, so the swap must not add it.
func TestARemovedAddressStaysRemoved(t *testing.T) {
	t.Parallel()
	for _, mode := range []file.Mode{file.Once, file.Ordered} {
		pool := stage(t)
		execute(t, pool, "CREATE TABLE address (account_id text PRIMARY KEY, street text NOT NULL)")
		p := parse(t, fmt.Sprintf(addresses, mode))
		log := []string{points("a", 1, 5), points("b", 1, 6)}
		f := feed(t, pool, p)
		f.consume(log)
		execute(t, pool, "DELETE FROM address WHERE account_id = 'a'")
		opts := rebuild.SwapOptions{Topic: "events", Actor: "me"}
		if _, _, err := rebuiltAs(t, pool, p, &log, opts, func() {
			log = append(log, strings.Replace(points("a", 2, 0), "PointsEarned", "AddressRemoved", 1))
			f.consume(log)
		}); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		same(t, string(mode), rows(t, pool, "SELECT account_id, street FROM address"), []string{"b 6"})
	}
}

const updating = `-- projection: sums
-- mode: %s
-- types: Opened, PointsEarned
-- tables: sum
INSERT INTO sum SELECT account_id, (data->>'points')::bigint FROM new_events WHERE event_type = 'Opened' ON CONFLICT DO NOTHING;
UPDATE sum s SET points = s.points + e.points
FROM (SELECT account_id, sum((data->>'points')::bigint) AS points FROM new_events WHERE event_type = 'PointsEarned' GROUP BY 1) AS e
WHERE s.account_id = e.account_id;
`

// TestWhatAnUpdateFoundNoRowForIsNotLost shows that the rows that the swap adds include the events
// that consumers processed after the comparison.
func TestWhatAnUpdateFoundNoRowForIsNotLost(t *testing.T) {
	t.Parallel()
	for _, mode := range []file.Mode{file.Once, file.Ordered} {
		pool := stage(t)
		execute(t, pool, "CREATE TABLE sum (account_id text PRIMARY KEY, points bigint NOT NULL)")
		p := parse(t, fmt.Sprintf(updating, mode))
		log := []string{strings.Replace(points("a", 1, 5), "PointsEarned", "Opened", 1)}
		f := feed(t, pool, p)
		f.consume(log)
		execute(t, pool, "DELETE FROM sum")
		opts := rebuild.SwapOptions{Topic: "events", Actor: "me"}
		if _, _, err := rebuiltAs(t, pool, p, &log, opts, func() {
			log = append(log, points("a", 2, 100))
			f.consume(log)
		}); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		same(t, string(mode), rows(t, pool, "SELECT account_id, points FROM sum"), []string{"a 105"})
	}
}

const adding = `-- projection: sums
-- mode: once
-- types: PointsEarned
-- tables: sum
INSERT INTO sum SELECT account_id, sum((data->>'points')::bigint) FROM new_events GROUP BY 1
ON CONFLICT (account_id) DO UPDATE SET points = sum.points + EXCLUDED.points;
`

// In TestWhatARebuildCountsIsMarked, a constraint refuses an event that the consumers read after
// the comparison. The constraint is then dropped, so the swap can apply this event. It also adds
// the marker of the event, so that a replay does not count the event again.
func TestWhatARebuildCountsIsMarked(t *testing.T) {
	t.Parallel()
	pool := stage(t)
	execute(t, pool, "CREATE TABLE sum (account_id text PRIMARY KEY, points bigint NOT NULL CONSTRAINT few CHECK (points < 50))")
	p := parse(t, adding)
	log := []string{points("a", 1, 5)}
	f := feed(t, pool, p)
	f.consume(log)
	execute(t, pool, "UPDATE sum SET points = 1")
	opts := rebuild.SwapOptions{Topic: "events", Actor: "me"}
	if _, _, err := rebuiltAs(t, pool, p, &log, opts, func() {
		log = append(log, points("a", 2, 60))
		f.consume(log)
		execute(t, pool, "ALTER TABLE sum DROP CONSTRAINT few; ALTER TABLE projector_rebuild.sum DROP CONSTRAINT few")
	}); err != nil {
		t.Fatal(err)
	}
	same(t, "rows", rows(t, pool, "SELECT account_id, points FROM sum"), []string{"a 65"})
	same(t, "markers", rows(t, pool, "SELECT message_id FROM inbox ORDER BY 1"), []string{"a-1", "a-2"})
}
