package sql

import (
	"fmt"
	"maps"
	"strings"
	"sync"
)

// balances is the projection whose accounts have money, and tables that it shares with none.
const balances = "account_balance"

// Accounts are the statements about the accounts of one projection and about what waits
// there: of account_balance, or of an ordered custom projection. The custom ones share their
// tables, which have a column for the projection's name. The placeholders are:
//
//	{account} {parked} {overflow} {hold}     the tables, and the view of what waits
//	{projection}                             the projection's name, as a literal
//	{of} {of_p} ...                          a condition for its rows (of p) that ends in AND
//	{projection_column} {projection_value}   in front of the columns and values of an INSERT
//
// A line that begins with {balances} or {custom} is a comment for the others. So is one that
// begins with {shard} or {one_server}: about accounts of one shard of Citus, or not.
type Accounts struct {
	Projection string
	// Values fill the placeholders, for statements that have others, too.
	Values         Values
	whole, ofShard map[string]string
}

// filled has the Accounts that were asked for, by projection.
var (
	filling sync.Mutex
	filled  = map[string]*Accounts{}
)

// AccountsOf are the statements for a projection, filled when they are first asked for.
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
	const off = "--"
	ofBalances := projection == balances
	v := Values{"projection": Literal(projection), "one_server": "", "shard": off}
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
	if ofBalances { // Citus distributes no others
		a.ofShard = v.With(Values{"one_server": off, "shard": ""}).Texts()
	}
	return a
}

// Balances reports whether these are the accounts of account_balance.
func (a *Accounts) Balances() bool { return a.Projection == balances }

// Query returns the text of queries/<name>.sql for these accounts. A wrong name panics.
func (a *Accounts) Query(name string) string { return find(a.whole, name) }

// QueryShard is Query about accounts of one shard of Citus, which are those of account_balance.
func (a *Accounts) QueryShard(name string) string { return find(a.ofShard, name) }

func find(texts map[string]string, name string) string {
	text, there := texts[name]
	if !there {
		panic(fmt.Sprintf("sql: no query named %q for accounts", name))
	}
	return text
}

// Names maps the texts that are sent for a projection to the names of their queries.
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

// With returns the values and more.
func (v Values) With(more Values) Values {
	all := maps.Clone(v)
	maps.Copy(all, more)
	return all
}

// Literal is a text as a constant in a statement.
func Literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
