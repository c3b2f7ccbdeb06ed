// Package sql holds every statement the projector sends to PostgreSQL, as files:
// migrations for goose and one file a query.
package sql

import (
	"embed"
	"fmt"
	"strings"
)

// Migrations are goose migrations, in the folder "migrations".
//
//go:embed migrations/*.sql
var Migrations embed.FS

//go:embed queries/*.sql
var queries embed.FS

//go:embed roles.sql
var roles string

// grantsMark begins the part of roles.sql that needs no right to create roles.
const grantsMark = "-- Grants."

// Roles is roles.sql: the roles and what they may do.
func Roles() string { return roles }

// Grants is the part of roles.sql that gives the roles that exist what they need of
// the tables that exist. The owner of the tables may repeat it.
func Grants() string {
	i := strings.Index(roles, grantsMark)
	if i < 0 {
		panic("sql: roles.sql has no grants")
	}
	return roles[i:]
}

// texts has the text of queries/<name>.sql by name.
var texts = func() map[string]string {
	files, err := queries.ReadDir("queries")
	if err != nil {
		panic(fmt.Sprintf("sql: %v", err)) // they are part of the program
	}
	texts := make(map[string]string, len(files))
	for _, file := range files {
		text, err := queries.ReadFile("queries/" + file.Name())
		if err != nil {
			panic(fmt.Sprintf("sql: %v", err))
		}
		texts[strings.TrimSuffix(file.Name(), ".sql")] = string(text)
	}
	return texts
}()

// Query returns the text of queries/<name>.sql. The files are part of the program,
// so a wrong name is a bug and panics.
func Query(name string) string {
	text, there := texts[name]
	if !there {
		panic(fmt.Sprintf("sql: no query named %q", name))
	}
	return text
}

// Names maps the text of each query to its name.
func Names() map[string]string {
	names := make(map[string]string, len(texts))
	for name, text := range texts {
		names[text] = name
	}
	return names
}
