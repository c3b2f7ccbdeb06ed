package database_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"projector/internal/cli/clitest"
	"projector/internal/cli/exit"
	"projector/internal/devstack"
)

// TestTheRemedyForAnotherEncoding has a database whose schema seems to be newer than this program,
// because an earlier release migrated databases with the encoding SQL_ASCII.
func TestTheRemedyForAnotherEncoding(t *testing.T) {
	s := clitest.NewStage(t)
	if _, err := s.Pool.Exec(t.Context(), `CREATE DATABASE another_encoding TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'`); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = s.Pool.Exec(t.Context(), `DROP DATABASE another_encoding WITH (FORCE)`) }()
	of := *s
	var err error
	if of.URL, err = devstack.WithDatabase(s.URL, "another_encoding"); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), of.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), `CREATE TABLE projector_schema_version AS SELECT 1000::bigint AS version_id, true AS is_applied`); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"migrate"}, {"run", "--listen=127.0.0.1:0"}, {"gaps"}} {
		clitest.Contains(t, of.Refused(exit.Failed, args...), "the database's encoding is SQL_ASCII and must be UTF8: create one with TEMPLATE template0 ENCODING 'UTF8'")
	}
}
