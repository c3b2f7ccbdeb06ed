package readmodel

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"projector/sql"
)

// RebuildTable is a table that a rebuild compares row by row, by its primary key, and how
// rows that differ are put right.
type RebuildTable struct {
	Name string
	// Sums names the columns that are added to: of a row that differs they are corrected by
	// what they were wrong by, so that what consumers add meanwhile stays in. None: each row
	// is of one event and never changes, and one that differs is replaced.
	Sums []string
	// Counts is the one of Sums that counts events.
	Counts string
	// Beside names columns that are written with a row and not compared: a row that differs
	// in nothing else is right.
	Beside []string
}

// rowColumn is a column of a table.
type rowColumn struct {
	quoted  string
	name    string
	typ     string
	key     bool
	collate bool // its text has an order of its own
}

// rowTable is a table in a rebuild: statements for any table are made for this one.
type rowTable struct {
	RebuildTable
	ofAccounts bool // each row is of an account
	fill       *strings.Replacer
}

// loadRowTable looks up what a table is made of.
func loadRowTable(ctx context.Context, db Querier, t RebuildTable) (*rowTable, error) {
	rows, err := db.Query(ctx, sql.Query("rows_columns"), t.Name)
	if err != nil {
		return nil, err
	}
	columns, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c rowColumn, err error) {
		err = row.Scan(&c.quoted, &c.name, &c.typ, &c.key, &c.collate)
		return c, err
	})
	if err != nil {
		return nil, err
	}
	if len(columns) == 0 || !columns[0].key {
		return nil, &RebuildTableError{Table: t.Name, Missing: len(columns) == 0}
	}
	return newRowTable(t, pgx.Identifier{t.Name}.Sanitize(), "difference_"+t.Name, columns), nil
}

// CheckRebuildTables fails with a *RebuildTableError when a rebuild of these tables would.
func CheckRebuildTables(ctx context.Context, db Querier, tables []RebuildTable) error {
	for _, t := range tables {
		if _, err := loadRowTable(ctx, db, t); err != nil {
			return err
		}
	}
	return nil
}

// RebuildTableError says that a table cannot be rebuilt.
type RebuildTableError struct {
	Table   string
	Missing bool // else it has no primary key
}

// Error implements error.
func (e *RebuildTableError) Error() string {
	if e.Missing {
		return "table " + e.Table + " does not exist: make it, or take it out of what rebuild makes anew"
	}
	return "table " + e.Table + " has no primary key, by which rebuild tells rows apart: ALTER TABLE " + e.Table + " ADD PRIMARY KEY (…);"
}

// SafeText implements errclass.Describer: it holds no data.
func (e *RebuildTableError) SafeText() string { return e.Error() }

// markerTable is the inbox of a projection as a table of a rebuild: markers are only there
// or not.
func markerTable(handler string) *rowTable {
	from := "(SELECT message_id FROM inbox WHERE handler = " + literal(handler) + ")"
	return newRowTable(RebuildTable{Name: "inbox"}, from, "difference_inbox",
		[]rowColumn{{quoted: "message_id", name: "message_id", typ: "text", key: true, collate: true}})
}

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// newRowTable makes the replacements for the {names} in statements for any table. Rows are
// read from from, d is what differs, s the rebuilt table, t the live one.
func newRowTable(t RebuildTable, from, difference string, columns []rowColumn) *rowTable {
	var key, rest, beside []rowColumn
	for _, c := range columns {
		switch {
		case c.key:
			key = append(key, c)
		case slices.Contains(t.Beside, c.name):
			beside = append(beside, c)
		case len(t.Sums) == 0 || slices.Contains(t.Sums, c.name):
			rest = append(rest, c)
		}
	}
	each := func(columns []rowColumn, format, between string) string {
		texts := make([]string, len(columns))
		for i, c := range columns {
			texts[i] = strings.NewReplacer("{c}", c.quoted, "{name}", literal(c.name), "{type}", c.typ).Replace(format)
		}
		return strings.Join(texts, between)
	}
	order := make([]string, len(key))
	for i, c := range key {
		if order[i] = "d." + c.quoted; c.collate {
			order[i] += ` COLLATE "C"`
		}
	}
	all := append(slices.Clone(key), rest...)
	written := append(slices.Clone(all), beside...)
	fit := "d._digest IS NOT DISTINCT FROM (SELECT hashtextextended(ROW (" + each(all, "t.{c}", ", ") + ")::text, 1) FROM " +
		from + " AS t WHERE (" + each(key, "t.{c}", ", ") + ") = (" + each(key, "d.{c}", ", ") + "))"
	sums := "NULL::text"
	if len(t.Sums) > 0 {
		fit = "(d._kind = 'missing' OR EXISTS (SELECT FROM " + from + " AS t WHERE (" + each(key, "t.{c}", ", ") + ") = (" + each(key, "d.{c}", ", ") + ")))"
		sums = "json_build_object(" + each(rest, "{name}, {c}", ", ") + ")::text"
	}
	const was, becomes = "(d._was->>{name})::numeric", "(d._becomes->>{name})::numeric"
	change := each(all, "s.{c}", ", ")
	if len(t.Sums) > 0 {
		change = each(rest, "trim_scale(coalesce("+becomes+", 0) - coalesce("+was+", 0))", ", ")
	}
	return &rowTable{t, ofAccounts(key), strings.NewReplacer(
		"{table}", pgx.Identifier{t.Name}.Sanitize(), "{from}", from, "{difference}", pgx.Identifier{difference}.Sanitize(),
		"{key}", each(key, "{c}", ", "), "{key_d}", each(key, "d.{c}", ", "), "{key_s}", each(key, "s.{c}", ", "), "{key_t}", each(key, "t.{c}", ", "),
		"{key_object}", each(key, "{name}, {c}", ", "), "{key_order}", strings.Join(order, ", "),
		"{all}", each(all, "{c}", ", "), "{written}", each(written, "{c}", ", "), "{written_s}", each(written, "s.{c}", ", "), "{sums}", each(rest, "{c}", ", "), "{sums_object}", sums,
		"{set_rebuilt}", each(written[len(key):], "{c} = s.{c}", ", "),
		"{set_corrected}", each(rest, "{c} = round(t.{c} + "+becomes+" - "+was+", scale("+becomes+"))::{type}", ", "),
		"{sums_rebuilt}", each(rest, "("+becomes+")::{type}", ", "),
		"{set_added}", each(rest, "{c} = t.{c} + EXCLUDED.{c}", ", "),
		"{set_subtracted}", each(rest, "{c} = (t.{c} - "+was+")::{type}", ", "),
		"{change}", change, "{all_zero}", cmp.Or(each(rest, "t.{c} = 0", " AND "), "true"),
		"{fit}", fit, "{counted}", countedBy(key), "{account}", auditColumn(key, "account_id", "text"), "{version}", auditColumn(key, "version", "bigint"),
	)}
}

// countedBy is what --max-differences counts: accounts, or rows where they are of none.
func countedBy(key []rowColumn) string {
	if ofAccounts(key) {
		return "DISTINCT account_id"
	}
	return "*"
}

func ofAccounts(key []rowColumn) bool {
	return slices.ContainsFunc(key, func(c rowColumn) bool { return c.name == "account_id" })
}

// auditColumn is a column of the key for the audit trail, null if it is not one or of another type.
func auditColumn(key []rowColumn, name, typ string) string {
	if slices.ContainsFunc(key, func(c rowColumn) bool { return c.name == name && c.typ == typ }) {
		return "d." + name
	}
	return "NULL"
}

// statement is a query of the folder sql, made for this table.
func (t *rowTable) statement(name string) string { return t.fill.Replace(sql.Query(name)) }
