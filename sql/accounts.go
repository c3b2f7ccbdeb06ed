package sql

import (
	"fmt"
	"maps"
	"strings"
	"sync"
)

// parkedSize is the size of a parked event, whose alias is p. It is the size of its key, value and
// stored headers. An empty array of headers has 13 bytes. The two size functions do not read data
// that is stored out of line (TOAST).
const parkedSize = "coalesce(octet_length(p.key), 0) + coalesce(octet_length(p.value), 0) + pg_column_size(p.headers) - 13"

// balances is the name of the projection whose accounts have money. This projection has separate
// tables.
const balances = "account_balance"

// Accounts are the statements about the accounts of one projection and about their waiting events.
// The projection is account_balance or an ordered custom projection. The custom projections share
// their tables, which have a column with the projection's name. These are the placeholders:
//
//	{account} {parked} {overflow} {hold}     the tables, and the view of waiting accounts
//	{projection}                             the projection's name, as a literal
//	{parked_size}                            the bytes of a parked event (alias p)
//	{of} {of_p} ...                          a condition for its rows (alias p) that ends in AND
//	{projection_column} {projection_value}   come before the columns and values of an INSERT
//
// A line that begins with {balances} is only for account_balance, and a line that begins with
// {custom} is only for custom projections. For all other projections, the line becomes a comment.
// In the same way, a line that begins with {shard} is only for accounts of one shard of Citus, and
// a line that begins with {one_server} is for all other cases.
type Accounts struct {
	Projection string
	// Values has the values of these placeholders. A caller needs them for a statement that has
	// other placeholders too.
	Values         Values
	whole, ofShard map[string]string
}

// filled caches the Accounts by the name of the projection.
var (
	filling sync.Mutex
	filled  = map[string]*Accounts{}
)

// AccountsOf returns the statements for a projection. The placeholders are replaced at the first
// call for the projection.
func AccountsOf(projection string) *Accounts {
	filling.Lock()
	defer filling.Unlock()
	if filled[projection] == nil {
		filled[projection] = newAccounts(projection)
	}
	return filled[projection]
}

func newAccounts(projection string) *Accounts {
	if projection == "" {
		panic("sql: accounts of no projection")
	}
	ofBalances := projection == balances
	v := Values{"projection": Literal(projection), "parked_size": parkedSize, "one_server": "", "shard": off}
	if ofBalances {
		maps.Copy(v, Values{
			"account": balances, "parked": "parked_event", "overflow": "park_overflow", "hold": "account_hold",
			"balances": "", "custom": off, "projection_column": "", "projection_value": "", "of": "",
		})
	} else {
		maps.Copy(v, Values{
			"account": "projection_account", "parked": "projection_parked_event", "overflow": "projection_park_overflow", "hold": "projection_hold",
			"balances": off, "custom": "", "projection_column": "projection, ", "projection_value": Literal(projection) + ", ",
			"of": "projection = " + Literal(projection) + " AND ",
		})
	}
	for _, alias := range []string{"b", "n", "o", "p", "t", "w"} {
		v["of_"+alias] = ""
		if !ofBalances {
			v["of_"+alias] = alias + "." + v["of"]
		}
	}
	a := &Accounts{Projection: projection, Values: v, whole: v.Texts()}
	if ofBalances { // Citus does not distribute the tables of custom projections
		a.ofShard = v.With(Values{"one_server": off, "shard": ""}).Texts()
	}
	return a
}

// Balances reports whether these are the accounts of account_balance.
func (a *Accounts) Balances() bool { return a.Projection == balances }

// Query returns the text of queries/<name>.sql for the accounts of this projection. A wrong name
// panics.
func (a *Accounts) Query(name string) string { return find(a.whole, name) }

// QueryShard is Query for accounts of one shard of Citus. It is only for account_balance.
func (a *Accounts) QueryShard(name string) string { return find(a.ofShard, name) }

func find(texts map[string]string, name string) string {
	text, there := texts[name]
	if !there {
		panic(fmt.Sprintf("sql: no query named %q for accounts", name))
	}
	return text
}

// Names maps the text of each query for a projection to the name of the query.
func Names(projection string) map[string]string {
	names := map[string]string{}
	a := AccountsOf(projection)
	for _, texts := range []map[string]string{a.whole, a.ofShard} {
		for name, text := range texts {
			names[text] = name
		}
	}
	return names
}

// With returns a copy of v with the values of more added.
func (v Values) With(more Values) Values {
	all := maps.Clone(v)
	maps.Copy(all, more)
	return all
}

// Literal returns a text as a string constant of SQL.
func Literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
