package file_test

import (
	"slices"
	"testing"

	"projector/projection/file"
)

func TestUpdatesFromEvents(t *testing.T) {
	for sql, want := range map[string][]int{
		"SELECT 1;\nUPDATE a SET n = n + 1\nFROM new_events e WHERE e.account_id = a.id":                                         {5},
		"UPDATE a SET n = 1 FROM b JOIN New_Events e USING (id)":                                                                 {4},
		"UPDATE a SET n = 1 FROM b, new_events":                                                                                  {4},
		"WITH x AS (SELECT 1)\nUPDATE a SET n = 1 FROM new_events":                                                               {5},
		"WITH x AS (\nUPDATE a SET n = 1 FROM new_events RETURNING n) INSERT INTO b SELECT * FROM x":                             {5},
		"UPDATE a SET n = g.n FROM (SELECT id, count(*) AS n FROM new_events GROUP BY id) g WHERE g.id = a.id":                   nil,
		"UPDATE a SET n = (SELECT count(*) FROM new_events) WHERE id IN (SELECT id FROM new_events)":                             nil,
		"INSERT INTO a SELECT id FROM new_events ON CONFLICT (id) DO UPDATE SET n = a.n + 1":                                     nil,
		"MERGE INTO a USING new_events e ON true WHEN MATCHED THEN UPDATE SET n = 1":                                             nil,
		"DELETE FROM a USING new_events e WHERE e.id = a.id":                                                                     nil,
		"UPDATE a SET n = extract(epoch FROM now()) FROM b":                                                                      nil,
		"UPDATE a SET n = 'FROM new_events' -- FROM new_events":                                                                  nil,
		"INSERT INTO b SELECT * FROM a FOR UPDATE; INSERT INTO b SELECT n FROM new_events; SELECT id FROM new_events FOR UPDATE": nil,
	} {
		p, err := file.Parse("f", []byte(header+sql))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.UpdatesFromEvents(); !slices.Equal(got, want) {
			t.Errorf("%s: lines %v, want %v", sql, got, want)
		}
	}
}
