package file_test

import (
	"reflect"
	"strings"
	"testing"

	"projector/projection/file"
)

// example is the projection file from the documentation of the contract.
const example = `-- projection: loyalty_points
-- mode: ordered
-- types: PointsSpent, PointsEarned
-- tables: loyalty
INSERT INTO loyalty (account_id, points)
SELECT account_id, sum((data->>'points')::bigint) FROM new_events GROUP BY account_id
ON CONFLICT (account_id) DO UPDATE SET points = loyalty.points + EXCLUDED.points;
`

func TestAFileIsRead(t *testing.T) {
	p, err := file.Parse("loyalty.sql", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	sql := strings.SplitAfterN(example, "\n", 5)[4]
	want := file.Projection{
		Name: "loyalty_points", Mode: file.Ordered, Types: []string{"PointsEarned", "PointsSpent"}, Tables: []string{"loyalty"}, TablesLine: 4,
		SQL: sql, Line: 5, Statements: []file.Statement{{SQL: strings.TrimSuffix(sql, ";\n"), Line: 5}},
		Text: example, SHA256: "15c5862454d6863f53692c75ded9120c82ab5213c6d6a623754f680d6a7f7e0a",
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("read\n%+v, want\n%+v", p, want)
	}
	other, err := file.Parse("another-name.sql", []byte(example+"\n"))
	if err != nil || other.SHA256 == p.SHA256 {
		t.Errorf("a line more: %v, the same hash", err)
	}
}

func TestHeadersAsPeopleWriteThem(t *testing.T) {
	p, err := file.Parse("f", []byte("\r\n--projection :a\r\n--\r\n-- what it is for, see https://wiki/x\r\n-- http://x\r\n--mode:once\r\n\r\n-- types: A,B b , C\r\n\r\n-- counts\r\nSELECT 1 FROM new_events\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "a" || p.Mode != file.Once || strings.Join(p.Types, "|") != "A|B b|C" || len(p.Tables) != 0 ||
		p.Line != 11 || p.Statements[0] != (file.Statement{SQL: "SELECT 1 FROM new_events", Line: 11}) {
		t.Errorf("read %+v", p)
	}
}

const header = "-- projection: p\n-- mode: once\n-- types: T\n"

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `1: the header has no line "-- projection: …"|1: the header has no line "-- mode: …"|1: the header has no line "-- types: …"`},
		{"-- mode: once\n-- types: T\nSELECT 1", `1: the header has no line "-- projection: …"`},
		{"-- projection: p\n-- types: T\nSELECT 1", `1: the header has no line "-- mode: …"`},
		{"-- projection: p\n-- mode: once\nSELECT 1", `1: the header has no line "-- types: …"`},
		{"SELECT 1;\n" + header, `1: the header has no line "-- projection: …"|1: the header has no line "-- mode: …"|1: the header has no line "-- types: …"`},
		{header + "-- grain: day\nSELECT 1", `4: the header has an unknown key "grain"`},
		{header + "-- Mode: once\nSELECT 1", `4: the header has an unknown key "Mode"`},
		{header + "-- table:\nSELECT 1", `4: the header has an unknown key "table"`},
		{header + "-- mode: ordered\nSELECT 1", `4: mode: is there twice, first in line 2`},
		{header + "-- types: U\nSELECT 1", `4: types: is there twice, first in line 3`},
		{"-- projection: p\n-- mode: twice\n-- types: T\nSELECT 1", `2: mode: "twice" is unknown; use once or ordered`},
		{"-- projection: p\n-- mode:\n-- types: T\nSELECT 1", `2: mode: "" is unknown`},
		{"-- projection: p\n-- mode: once\n-- types:\nSELECT 1", `3: types: is empty`},
		{"-- projection: p\n-- mode: once\n-- types: A,,B\nSELECT 1", `3: types: has an empty item`},
		{"-- projection: p\n-- mode: once\n-- types: A, B, A\nSELECT 1", `3: types: "A" is there twice`},
		{header + "-- tables: a, a\nSELECT 1", `4: tables: "a" is there twice`},
		{header + "-- tables: a, A\nSELECT 1", `4: tables: "a" is there twice`},
		{header + "-- tables: a b\nSELECT 1", `4: tables: "a b" is no name of a table`},
		{header + "-- tables: x.y\nSELECT 1", `4: tables: "x.y" is no name of a table; write it without its schema`},
		{header + "-- tables: a; DROP TABLE b\nSELECT 1", `4: tables: "a; DROP TABLE b" is no name of a table`},
		{header + "\n-- nothing\n;;\n", `6: there is no statement after the header`},
		{header + "SELECT 1;\nCOMMIT;\nSELECT 2", `5: COMMIT: begins or ends a transaction`},
		{header + "SELECT 1;\n\n/* now */ commit and chain", `6: COMMIT: begins`},
		{header + "BEGIN", `4: BEGIN: `},
		{header + "Start\nTransaction", `4: START: `},
		{header + "END", `4: END: `},
		{header + "ROLLBACK TO a", `4: ROLLBACK: `},
		{header + "ABORT", `4: ABORT: `},
		{header + "SAVEPOINT a", `4: SAVEPOINT: `},
		{header + "RELEASE a", `4: RELEASE: `},
		{header + "PREPARE TRANSACTION 'a'", `4: PREPARE TRANSACTION: begins`},
		{header + "PREPARE a AS SELECT 1", `4: PREPARE: lasts longer`},
		{header + "SET ROLE postgres", `4: SET ROLE: changes who`},
		{header + "SET -- quietly\nLOCAL ROLE postgres", `4: SET LOCAL ROLE: changes who`},
		{header + "SET SESSION AUTHORIZATION a", `4: SET SESSION AUTHORIZATION: changes who`},
		{header + "SET LOCAL SESSION AUTHORIZATION a", `4: SET LOCAL SESSION AUTHORIZATION: changes who`},
		{header + "RESET ROLE", `4: RESET: changes who`},
		{header + "SET search_path = x", `4: SET: lasts longer than the transaction, and the connection is another's then; use SET LOCAL`},
		{header + `SET "role" = x`, `4: SET: lasts longer`},
		{header + "SET TRANSACTION READ ONLY", `4: SET TRANSACTION: begins`},
		{header + "COPY a FROM STDIN", `4: COPY: sends rows`},
		{header + "SELECT 1;\nLISTEN a", `5: LISTEN: lasts longer`},
		{header + "VACUUM", `4: VACUUM: cannot run`},
		{header + "SELECT 'a\n", `4: a quote begins here and never ends`},
		{header + "SELECT\n\"a", `5: a quote begins here and never ends`},
		{header + "SELECT 1 /* /* */\n", `4: a comment begins here and never ends`},
		{header + "SELECT $a$ $b$\n", `4: a text begins here with $a$ and never ends`},
		{header + "SELECT (\n(1)\n", `4: a parenthesis is opened here and never closed`},
		{header + "SELECT 1)\n", `4: a parenthesis is closed that was not opened`},
		{header + "SELECT $1\n", `4: $1: the statements have no parameters`},
		{header + "SELECT 1;\n\\set x 1\n", `5: a backslash is outside of quotes`},
		{header + "SELECT 1;\nCREATE TABLE IF NOT EXISTS a (b int)", `5: CREATE: changes the schema`},
		{header + "Fetch all from projector_new_events", `4: FETCH: is about cursors`},
		{header + "SELECT (1;\nSELECT 2)", `4: a parenthesis is opened here|5: a parenthesis is closed`},
		{"\uFEFF" + header + "SELECT 1", `1: the file begins with a byte order mark`},
		{header + "SELECT '\xff'", `4: is not UTF-8`},
		{header + "SELECT '\x00'", `4: has a NUL byte`},
		{header + strings.Repeat(" ", 1<<20), `1: the file is larger than 1048576 bytes`},
		{"-- projection: P\n-- mode: x\nCOMMIT", `1: projection: "P" is no name|1: the header has no line "-- types: …"|2: mode: "x" is unknown|3: COMMIT: `},
	} {
		_, err := file.Parse("dir/f.sql", []byte(c.text))
		if err == nil {
			t.Errorf("%.200q is taken", c.text)
			continue
		}
		got := strings.Split(err.Error(), "\n")
		want := strings.Split(c.want, "|")
		if len(got) != len(want) {
			t.Errorf("%.200q: %v, want %q", c.text, err, want)
			continue
		}
		for i := range want {
			if !strings.HasPrefix(got[i], "dir/f.sql: line "+want[i]) {
				t.Errorf("%.200q: %v, want %q", c.text, got[i], want[i])
			}
		}
	}
}

func TestNames(t *testing.T) {
	for name, good := range map[string]bool{
		"p": true, "a1_": true, strings.Repeat("a", 40): true,
		"": false, "P": false, "1a": false, "_a": false, "a-b": false, "a b": false, "é": false, strings.Repeat("a", 41): false,
		"account_balance": false, "account_statement": false, "daily_turnover": false,
	} {
		_, err := file.Parse("f", []byte("-- projection: "+name+"\n-- mode: once\n-- types: T\nSELECT 1"))
		if (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "f: line 1: projection: ") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestLinesOfPositions(t *testing.T) {
	s := file.Statement{SQL: "a\nbé\nc", Line: 7}
	for position, want := range map[int]int{0: 7, 1: 7, 2: 7, 3: 8, 4: 8, 5: 8, 6: 9, 7: 7, 99: 7} {
		if got := s.LineAt(position); got != want {
			t.Errorf("position %d is on line %d, want %d", position, got, want)
		}
	}
}
