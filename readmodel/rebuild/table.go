package rebuild

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"projector/readmodel"
	"projector/sql"
)

type rowColumn struct {
	quoted  string
	name    string
	typ     string
	key     bool
	collate bool // a text column with its own collation
	made    bool // a generated column, which is not written; it is only read if it belongs to the key
}

// rowTable is a table in a rebuild, with the values for the placeholders of its statements.
type rowTable struct {
	readmodel.RebuildTable
	ofAccounts bool // each row belongs to an account
	uncounted  bool // the report does not count its rows
	waits      bool // events may wait for a row, which is an account
	fill       sql.Values
}

// loadColumns reads the columns of a table, with the columns of the primary key first.
func loadColumns(ctx context.Context, db readmodel.Querier, name string) ([]rowColumn, error) {
	rows, _ := db.Query(ctx, sql.Query("rows_columns"), name)
	refused := &TableError{Table: name}
	columns, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c rowColumn, err error) {
		var isLost, isIdentity bool
		err = row.Scan(&c.quoted, &c.name, &c.typ, &c.key, &c.collate, &c.made, &isLost, &isIdentity, &refused.deferrable, &refused.elsewhere, &refused.model)
		if isLost {
			refused.generated = c.quoted
		}
		if isIdentity {
			refused.identity = c.quoted
		}
		return c, err
	})
	if err == nil && (len(columns) == 0 || !columns[0].key || refused.generated != "" || refused.identity != "" || refused.deferrable || refused.elsewhere != "") {
		refused.Missing = len(columns) == 0
		err = refused
	}
	return columns, err
}

// CheckTables returns a *TableError if one of the tables cannot be rebuilt.
func CheckTables(ctx context.Context, db readmodel.Querier, tables []readmodel.RebuildTable) error {
	for _, t := range tables {
		if _, err := loadColumns(ctx, db, t.Name); err != nil {
			return err
		}
	}
	return nil
}

// checkDefaults notes a *TableError if the copy of another owner's table lacks a default, and has rows
// that needed this default.
func (c *comparison) checkDefaults(ctx context.Context, t *rowTable, live, rebuilt pgx.Tx) error {
	columns, err := readmodel.Texts(ctx, live, "look for defaults", "shadow_defaults", t.Name)
	for _, column := range columns {
		null := false
		if err := rebuilt.QueryRow(ctx, t.fill.With(sql.Values{"column": column}).Query("rows_null")).Scan(&null); err != nil {
			return err
		}
		if null {
			c.refused = &TableError{Table: t.Name, defaulted: column}
		}
	}
	return err
}

// TableError means that a table cannot be rebuilt.
type TableError struct {
	Table   string
	Missing bool // the table does not exist
	// elsewhere is the schema of the table if it is not the schema model, which the read model is in.
	// generated is a column of the key whose expression the copy lacks. identity is a column that
	// PostgreSQL refuses to write. defaulted is a column whose default the copy lacks. A table that is
	// neither missing nor elsewhere, and has no such column and no deferrable key, has no primary key.
	elsewhere, model, generated, identity, defaulted string
	deferrable                                       bool // the primary key is deferrable
}

func (e *TableError) Error() string {
	if e.Missing {
		return "table " + e.Table + " does not exist: make it, or remove it from the tables that rebuild replaces"
	}
	if e.elsewhere != "" {
		return "table " + e.Table + " is in schema " + e.elsewhere + ", and rebuild replaces tables of schema " + e.model + ": " +
			"move it there (ALTER TABLE " + e.elsewhere + "." + e.Table + " SET SCHEMA " + e.model + "), or remove it from the tables that rebuild replaces"
	}
	if e.generated != "" {
		return "column " + e.generated + " of the primary key of table " + e.Table + " is generated, and rebuild does not run expressions of the table's owner: " +
			"make the owner of the read model the owner of the table, or remove the table from the tables that rebuild replaces"
	}
	if e.identity != "" {
		return "column " + e.identity + " of table " + e.Table + " is GENERATED ALWAYS AS IDENTITY, and rebuild writes all columns from the events: " +
			"ALTER TABLE " + e.Table + " ALTER " + e.identity + " DROP IDENTITY, or remove the table from the tables that rebuild replaces"
	}
	if e.deferrable {
		return "the primary key of table " + e.Table + " is DEFERRABLE, and PostgreSQL has no ON CONFLICT for such a key: " +
			"make it without DEFERRABLE, or remove the table from the tables that rebuild replaces"
	}
	if e.defaulted != "" {
		return "column " + e.defaulted + " of table " + e.Table + " has a default, and rebuild does not run expressions of the table's owner, so it would write null: " +
			"set the column in the SQL of the projection, or make the owner of the read model the owner of the table"
	}
	return "table " + e.Table + " has no primary key, by which rebuild finds a row: ALTER TABLE " + e.Table + " ADD PRIMARY KEY (…);"
}

// SafeText implements errclass.Describer: the text contains no data.
func (e *TableError) SafeText() string { return e.Error() }

// rowSource describes where the rows of a rowTable come from.
type rowSource struct {
	readmodel.RebuildTable
	columns []rowColumn
	label   string                     // only rows of this projection; if empty, all rows
	noted   string                     // name of the table of differences; if empty, the table's name
	from    func(schema string) string // a query instead of the table; may be nil
}

// newRowTable computes the values of the placeholders in the statements. In most statements, the
// alias d means the noted differences, s the shadow table, and t or l the live table.
func newRowTable(s rowSource) *rowTable {
	ofT, from := "", s.from
	if s.label != "" {
		ofT = sql.AccountsOf(s.label).Values["of_t"]
	}
	table := pgx.Identifier{s.Name}.Sanitize()
	if from == nil {
		from = func(schema string) string {
			if s.label == "" {
				return schema + table
			}
			return "(SELECT * FROM " + schema + table + " AS t WHERE " + ofT + "true)"
		}
	}
	var key, compared, written []rowColumn
	for _, c := range s.columns {
		switch {
		case c.key && c.name == "projection" && s.label != "":
			written = append(written, c)
			continue
		case c.key:
			key = append(key, c)
		case !slices.Contains(s.Uncompared, c.name):
			compared = append(compared, c)
		}
		if !c.made {
			written = append(written, c)
		}
	}
	all := append(slices.Clone(key), compared...)
	order := make([]string, len(key))
	for i, c := range key {
		if order[i] = "d." + c.quoted; c.collate {
			order[i] += ` COLLATE "C"`
		}
	}
	fill := sql.Values{
		"table": table, "of_t": ofT, "from": from(""), "shadow": from(shadowSchema + "."),
		"some": from(""), "again_l": from(""), "again_s": from(shadowSchema + "."),
		"group_t": groupOf(each(key, "t.{c}")), "chosen_t": chosen(each(key, "t.{c}")),
		"noted": pgx.Identifier{"difference_" + cmp.Or(s.noted, s.Name)}.Sanitize(),
		"key":   each(key, "{c}"), "key_order": strings.Join(order, ", "),
		"key_object": each(key, "{name}, {c}"), "key_object_d": each(key, "{name}, d.{c}"), "all": each(all, "{c}"),
		"written": each(written, "{c}"), "written_s": writtenNow(written, s.Uncompared),
		"set_rebuilt": each(written, "{c} = s.{c}"), // with the key, because equal keys may be different texts, such as 1.0 and 1.00
		"present_l":   "l." + key[0].quoted + " IS NOT NULL", "present_s": "s." + key[0].quoted + " IS NOT NULL",
		"counted": countedBy(key), "audit_account": auditColumn(key, "account_id", "text"), "audit_version": auditColumn(key, "version", "bigint"),
	}
	for _, alias := range []string{"d", "s", "t", "l", "w"} {
		fill["key_"+alias], fill["all_"+alias] = each(key, alias+".{c}"), each(all, alias+".{c}")
		fill["version_"+alias], fill["hold_"+alias] = "NULL::bigint", "''::text"
	}
	return &rowTable{RebuildTable: s.RebuildTable, ofAccounts: ofAccounts(key), fill: fill}
}

// groupOf returns the SQL for the number of a key's group.
func groupOf(key string) string {
	return "hashtextextended(ROW (" + key + ")::text, 0) & " + strconv.Itoa(groupCount-1)
}

// chosen returns the SQL that checks whether the bit of a key's group is set in $1. For the
// operator <>, PostgreSQL estimates that most rows are chosen. For =, it would estimate few rows,
// and its plan would be slow if there are many.
func chosen(key string) string {
	return "get_bit($1::bytea, (" + groupOf(key) + ")::int) <> 0"
}

// writtenNow returns the columns of the shadow table. If updated_at is not compared, its value is the
// present time.
func writtenNow(columns []rowColumn, uncompared []string) string {
	values := make([]string, len(columns))
	for i, c := range columns {
		if values[i] = "s." + c.quoted; c.name == "updated_at" && slices.Contains(uncompared, c.name) {
			values[i] = "now()"
		}
	}
	return strings.Join(values, ", ")
}

// each fills the format for each column. In the format, {c} is the column and {name} is a constant
// with its name.
func each(columns []rowColumn, format string) string {
	texts := make([]string, len(columns))
	for i, c := range columns {
		texts[i] = sql.Values{"c": c.quoted, "name": sql.Literal(c.name)}.Fill(format)
	}
	return strings.Join(texts, ", ")
}

// countedBy returns the SQL for what --max-differences counts. These are accounts, or rows if the
// table has no accounts.
func countedBy(key []rowColumn) string {
	if ofAccounts(key) {
		return "DISTINCT account_id"
	}
	return "*"
}

func ofAccounts(key []rowColumn) bool {
	return slices.ContainsFunc(key, func(c rowColumn) bool { return c.name == "account_id" })
}

// auditColumn returns the SQL for a key column in the audit trail. The SQL is NULL if the key has
// no such column of this type.
func auditColumn(key []rowColumn, name, typ string) string {
	if slices.ContainsFunc(key, func(c rowColumn) bool { return c.name == name && c.typ == typ }) {
		return "d." + name
	}
	return "NULL"
}

// markerTable returns the inbox of a projection as a table of a rebuild. A marker has only a key,
// so it can be missing but cannot differ.
func markerTable(handler string) *rowTable {
	t := newRowTable(rowSource{
		RebuildTable: readmodel.RebuildTable{Name: "inbox"},
		columns:      []rowColumn{{quoted: "message_id", name: "message_id", typ: "text", key: true, collate: true}},
		from: func(schema string) string {
			return "(SELECT message_id FROM " + schema + "inbox WHERE handler = " + sql.Literal(handler) + ")"
		},
	})
	t.uncounted = true
	return t
}

// accountState holds the tables of a projection's accounts and of their waiting events. One
// transaction replaces an account in these tables and its rows in the other tables of the
// projection.
type accountState struct {
	account          *rowTable // with what waits in the column hold
	parked, overflow *rowTable
	fill             sql.Values // for the statements about the waiting events of these accounts
	balances         bool       // true for account_balance, whose rows are the accounts
}

// newAccountState returns the accountState of account_balance or, with a label, of an ordered
// custom projection.
func newAccountState(ctx context.Context, db readmodel.Querier, label string, parkLimit, parkBytes int64) (*accountState, error) {
	projection, uncompared := readmodel.BalanceName, []string{"updated_at"}
	if label != "" {
		projection, uncompared = label, append(uncompared, "last_event_at")
	}
	fill := sql.AccountsOf(projection).Values
	account, parked, overflow := fill["account"], fill["parked"], fill["overflow"]
	columns, err := loadColumns(ctx, db, account)
	if err != nil {
		return nil, err
	}
	id := []rowColumn{{quoted: "account_id", name: "account_id", typ: "text", key: true, collate: true}}
	fill = fill.With(sql.Values{"limit": strconv.FormatInt(parkLimit, 10), "bytes": strconv.FormatInt(parkBytes, 10)})
	kept := strings.TrimSpace(fill.With(sql.Values{"schema": shadowSchema + "."}).Query("hold_kept"))
	s := &accountState{balances: label == ""}
	s.fill = fill.With(sql.Values{"kept": kept})
	s.account = newRowTable(rowSource{RebuildTable: readmodel.RebuildTable{Name: account, Uncompared: uncompared}, columns: columns, label: label})
	s.account.uncounted, s.account.waits = !s.balances, true
	s.account.fill = s.account.fill.With(s.withHold(func(schema, amongP, amongW string) string {
		return strings.TrimSpace(fill.With(sql.Values{"schema": schema, "among_p": amongP, "among_w": amongW}).Query("hold_from"))
	}))
	s.parked = newRowTable(rowSource{RebuildTable: readmodel.RebuildTable{Name: parked}, columns: id, label: label, noted: account})
	s.overflow = newRowTable(rowSource{RebuildTable: readmodel.RebuildTable{Name: overflow}, columns: id, label: label, noted: account})
	return s, nil
}

func (s *accountState) copied() []string {
	return []string{s.account.Name, s.parked.Name, s.overflow.Name}
}

// withHold returns the values that join the accounts and their waiting events for a comparison. The
// parameter hold returns the query of what waits in a schema, with the conditions for the aliases p
// and w. These conditions are inside the query, because PostgreSQL computes what waits before it
// joins it. Under the locks, what waits is looked up for each noted account, so that the time does
// not depend on the number of all waiting events.
func (s *accountState) withHold(hold func(schema, amongP, amongW string) string) sql.Values {
	of := s.account.fill
	again := func(accounts, schema string) string {
		return "(SELECT * FROM (SELECT account_id FROM " + shadowSchema + "." + of["noted"] + ") AS d LEFT JOIN " + accounts +
			" AS a USING (account_id) LEFT JOIN LATERAL " + hold(schema, "p.account_id = d.account_id", "w.account_id = d.account_id") +
			" AS h USING (account_id) WHERE a.version IS NOT NULL OR h.hold IS NOT NULL)"
	}
	values := sql.Values{
		"waiting": hold("", "true", "true"), "group_h": groupOf("h.account_id"),
		// It is no FULL JOIN, because PostgreSQL would not read the accounts in parallel.
		"some": "(WITH h AS MATERIALIZED " + hold("", chosen("p.account_id"), chosen("w.account_id")) +
			" SELECT * FROM " + of["from"] + " AS a LEFT JOIN h USING (account_id) UNION ALL " +
			"SELECT * FROM " + of["from"] + " AS a RIGHT JOIN (SELECT * FROM h WHERE _absent) AS h USING (account_id))",
		"again_l": again(of["from"], ""), "again_s": again(of["shadow"], shadowSchema+"."),
	}
	for _, alias := range []string{"t", "l", "s"} {
		values["version_"+alias], values["hold_"+alias] = alias+".version", "coalesce("+alias+".hold, '')"
	}
	return values
}
