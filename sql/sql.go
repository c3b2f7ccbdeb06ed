// Package sql holds every statement the projector sends to PostgreSQL, as files:
// migrations for goose and one file a query.
package sql

import (
	"embed"
	"fmt"
)

// Migrations are goose migrations, in the folder "migrations".
//
//go:embed migrations/*.sql
var Migrations embed.FS

//go:embed queries/*.sql
var queries embed.FS

// Query returns the text of queries/<name>.sql. The files are part of the program,
// so a wrong name is a bug and panics.
func Query(name string) string {
	text, err := queries.ReadFile("queries/" + name + ".sql")
	if err != nil {
		panic(fmt.Sprintf("sql: no query named %q", name))
	}
	return string(text)
}
