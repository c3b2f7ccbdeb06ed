// Package sql has the SQL statements of the projector as files. There are migrations for goose, and
// one file for each query.
package sql

import (
	"embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Migrations are goose migrations. They are in the folder "migrations".
//
//go:embed migrations/*.sql
var Migrations embed.FS

//go:embed queries/*.sql
var queries embed.FS

//go:embed roles.sql
var roles string

// grantsMark is the beginning of the part of roles.sql that does not need the right to create
// roles.
const grantsMark = "-- Grants."

// Roles returns roles.sql, which creates the database roles and their grants.
func Roles() string { return roles }

// Grants returns the part of roles.sql that grants privileges on existing tables to existing roles.
// The owner of the tables may execute it repeatedly.
func Grants() string {
	i := strings.Index(roles, grantsMark)
	if i < 0 {
		panic("sql: roles.sql has no grants")
	}
	return roles[i:]
}

// variants has the files from which more than one query is made. It maps the name of the file to the
// queries, and each query to the values of the file's placeholders.
var variants = map[string]map[string]Values{
	"discards_lock": {
		"discards_begin": {"lock": "pg_advisory_xact_lock"}, "discards_prevent": {"lock": "pg_advisory_xact_lock_shared"},
	},
	"inbox_lock":   {"inbox_prune_lock": {"nowait": "NOWAIT"}, "inbox_prune_wait": {"nowait": ""}},
	"positions":    {"position_load": {"locked": off}, "position_lock": {"locked": ""}},
	"ready":        readyQueries(),
	"rebuild_lock": {"shadow_lock": {"lock": "pg_try_advisory_lock"}, "shadow_unlock": {"lock": "pg_advisory_unlock"}},
}

// processed is the value of {processed}. This condition says that records were processed with a
// position, whose alias is p. If the topic was recreated, the position may be 0 again. In this case,
// records of the earlier topic of this name were processed.
const processed = `(greatest(p.next_offset, p.judged_until) > 0 OR EXISTS (
    SELECT FROM projector_source AS earlier
    WHERE earlier.projection = p.projection AND earlier.topic = p.topic AND earlier.topic_id <> p.topic_id))`

// operators is the value of {operators}, a query. It returns the roles that have the rights of
// projector_operator or may assume a role that has them, without superusers. Since PostgreSQL 16, a
// login is a member of each role that it creates, but may only grant the role to others. Such a login
// is no operator. It can do what it wants, as a superuser can.
const operators = `SELECT who.oid
    FROM pg_roles AS who
    JOIN pg_roles AS has ON pg_has_role(who.oid, has.oid, CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'MEMBER' ELSE 'SET' END)
    WHERE pg_has_role(has.oid, to_regrole('projector_operator'), 'USAGE') AND NOT who.rolsuper AND NOT has.rolsuper`

// off is the value of a placeholder at the beginning of a line that a query does not have.
const off = "--"

// texts has the texts of queries/<name>.sql, by name. Instead of a file in variants, it has the
// queries that are made from it.
var texts = func() map[string]string {
	files, err := queries.ReadDir("queries")
	if err != nil {
		panic(fmt.Sprintf("sql: %v", err)) // the files are embedded, so this is a bug
	}
	texts := make(map[string]string, len(files))
	shared := strings.NewReplacer("{processed}", processed, "{operators}", operators)
	for _, file := range files {
		text, err := queries.ReadFile("queries/" + file.Name())
		if err != nil {
			panic(fmt.Sprintf("sql: %v", err))
		}
		texts[strings.TrimSuffix(file.Name(), ".sql")] = shared.Replace(string(text))
	}
	for file, made := range variants {
		for name, values := range made {
			texts[name] = values.Fill(texts[file])
		}
		delete(texts, file)
	}
	return texts
}()

// placeholder matches a name in braces, which is replaced by a value. The value is, for example,
// the name of a table.
var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// plain has the texts without placeholders, by name.
var plain = Values{}.Texts()

// Query returns the text of queries/<name>.sql, which has no placeholders. The files are embedded,
// so a wrong name is a bug, and Query panics.
func Query(name string) string {
	text, there := plain[name]
	if !there {
		panic(fmt.Sprintf("sql: no query named %q without placeholders", name))
	}
	return text
}

// Values maps the names of placeholders to their values.
type Values map[string]string

// Query returns the text of queries/<name>.sql with its placeholders replaced. A wrong name or a
// placeholder without a value is a bug, so Query panics.
func (v Values) Query(name string) string {
	text, there := texts[name]
	if !there {
		panic(fmt.Sprintf("sql: no query named %q", name))
	}
	return v.Fill(text)
}

// Fill replaces the placeholders in a text. A placeholder without a value is a bug, so Fill panics.
func (v Values) Fill(text string) string {
	filled, missing := v.fill(text)
	if missing != "" {
		panic(fmt.Sprintf("sql: no value for {%s} in %q", missing, text))
	}
	return filled
}

// fill replaces the placeholders in a text. If a placeholder has no value, the result missing is
// the name of the placeholder.
func (v Values) fill(text string) (filled, missing string) {
	filled = placeholder.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.Trim(found, "{}")
		value, known := v[name]
		if !known {
			missing = name
		}
		return value
	})
	return filled, missing
}

// Texts returns, by name, all queries whose placeholders have values in v.
func (v Values) Texts() map[string]string {
	filled := map[string]string{}
	for name, text := range texts {
		if text, missing := v.fill(text); missing == "" {
			filled[name] = text
		}
	}
	return filled
}

// QueryNames returns the names of all queries in sorted order.
func QueryNames() []string { return slices.Sorted(maps.Keys(texts)) }
