package file_test

import (
	"strings"
	"testing"

	"projector/projection/file"
)

func TestUses(t *testing.T) {
	for sql, want := range map[string]string{
		strings.SplitAfterN(example, "\n", 5)[4]:                                                                  "loyalty INSERT, loyalty SELECT, loyalty UPDATE",
		"INSERT INTO a SELECT * FROM new_events":                                                                  "a INSERT",
		"INSERT INTO s.a (x) VALUES (1) RETURNING x":                                                              "s.a INSERT, s.a SELECT",
		`UPDATE "A b".c SET x = e.x FROM new_events e, s.d AS k, only f WHERE true`:                               `"A b".c UPDATE, "A b".c SELECT, s.d SELECT, f SELECT`,
		"DELETE FROM ONLY a USING b JOIN c ON true LEFT JOIN LATERAL g(1) ON true":                                "a DELETE, a SELECT, b SELECT, c SELECT",
		"MERGE INTO a USING new_events e ON true WHEN MATCHED THEN UPDATE SET x = 1 WHEN NOT MATCHED THEN INSERT": "a SELECT, a UPDATE, a INSERT",
		"SELECT f(account_id) FROM new_events FOR UPDATE":                                                         "",
		"TRUNCATE TABLE a; INSERT INTO a TABLE b":                                                                 "a TRUNCATE, a INSERT",
		"WITH w AS (DELETE FROM a RETURNING x) INSERT INTO b SELECT x FROM w, unnest(ARRAY[1])":                   "a DELETE, a SELECT, b INSERT, w SELECT",
	} {
		p, err := file.Parse("f", []byte(header+sql))
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		var got []string
		for _, use := range p.Uses() {
			got = append(got, use.Table+" "+use.Privilege)
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s\nuses %s\nwant %s", sql, text, want)
		}
	}
}
