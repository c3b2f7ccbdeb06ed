// Package outbox fetches events from a producer's transactional outbox, which is the table in which
// the producer stores events before it publishes them. It fetches and applies the events that
// accounts wait for, for example because Kafka did not deliver them.
//
//	gap register ──due──▶ query ──▶ outbox ──rows──▶ decode ──▶ repair
//	                 ▲                                            │
//	                 └───────── later queries, with pauses ───────┘
//
// The gap register in PostgreSQL lists the versions that accounts wait for. Schedule decides,
// without I/O, for which accounts the outbox is queried and when. Client sends the queries on a
// separate connection and only reads. Fetch sends a query, decodes the result and returns only the
// requested events. Fetcher repeats this while a consumer runs. An event is applied as a
// readmodel.RepairRecord without a Kafka position. If Kafka delivers the event later, the consumer
// skips it as a duplicate.
package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"projector/errclass"
	"projector/projection/event"
	"projector/readmodel"
	"projector/sql"
)

// askWithin is the deadline of one query, including the time to connect. The server's own time
// limit for the query is shorter.
const askWithin = 15 * time.Second

// Version identifies an event by its account and version.
type Version struct {
	AccountID string
	Number    int64
}

// Client queries an outbox. It connects when it needs a connection, and has at most one connection
// at a time. It is not safe for concurrent use.
type Client struct {
	URL string
	// Password is called before each connection attempt, so the password may change. If this
	// function is nil, the password is in URL.
	Password func() (string, error)
	Query    string

	conn *pgx.Conn // nil if there is no connection
}

// These are the names that the columns of the query's result should have.
const (
	columnKey     = "key"
	columnValue   = "value"
	columnHeaders = "headers"
)

var (
	asksForAccounts = regexp.MustCompile(`\$1(\D|$)`)
	asksForVersions = regexp.MustCompile(`\$2(\D|$)`)
)

// CheckQuery returns an error if a query does not use both parameters, $1 and $2.
func CheckQuery(query string) error {
	if asksForAccounts.MatchString(query) && asksForVersions.MatchString(query) {
		return nil
	}
	return errclass.Text("must select by $1, the account ids (text[]), and $2, their versions (bigint[]), e.g. " +
		`"SELECT o.aggregateid AS key, o.payload AS value FROM outbox o ` +
		`JOIN unnest($1::text[], $2::bigint[]) AS w (account_id, version) ON o.aggregateid = w.account_id AND o.version = w.version"`)
}

// CheckURL returns an error if the URL cannot be parsed. The caller must print the error with
// errclass.Safe, because the error may contain the password.
func CheckURL(url string) error {
	_, err := pgx.ParseConfig(url)
	return err
}

// Ask queries the outbox for the wanted events and calls receive with each message of the result.
// The messages are in any order, and some may not have been requested. An error of receive ends Ask
// and is returned unchanged.
func (c *Client) Ask(ctx context.Context, wanted []Version, receive Receive) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	if err := c.connect(ctx); err != nil {
		return fmt.Errorf("reach the outbox by --outbox-url (OUTBOX_URL): %w", err)
	}
	// With the level SERIALIZABLE, PostgreSQL could refuse the producer's transactions because of this one.
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, c.conn, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sql.Query("outbox_session")); err != nil {
			return err
		}
		return c.read(ctx, wanted, receive)
	})
	if err != nil {
		c.Close()
	}
	return err
}

func (c *Client) connect(ctx context.Context) error {
	if c.conn != nil && !c.conn.IsClosed() {
		return nil
	}
	cfg, err := pgx.ParseConfig(c.URL)
	if err != nil {
		return err
	}
	if c.Password != nil {
		if cfg.Password, err = c.Password(); err != nil {
			return err
		}
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "projector"
	}
	// A query without prepared statements also works through a connection pooler.
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	c.conn, err = readmodel.Connect(ctx, cfg)
	return err
}

// Close ends the connection. The next query opens another connection.
func (c *Client) Close() {
	if c.conn != nil {
		readmodel.CloseReading(c.conn)
		c.conn = nil
	}
}

// read sends the query together with the types of its parameters, so the query needs no casts.
// Columns of all types are read as text.
func (c *Client) read(ctx context.Context, wanted []Version, receive Receive) error {
	accounts, versions := make([]string, len(wanted)), make([]int64, len(wanted))
	for i, w := range wanted {
		accounts[i], versions[i] = w.AccountID, w.Number
	}
	types := []uint32{pgtype.TextArrayOID, pgtype.Int8ArrayOID}
	values := make([][]byte, len(types))
	for i, array := range []any{accounts, versions} {
		var err error
		if values[i], err = c.conn.TypeMap().Encode(types[i], pgtype.TextFormatCode, array, nil); err != nil {
			return err
		}
	}
	rows := pgx.RowsFromResultReader(c.conn.TypeMap(), c.conn.PgConn().ExecParams(ctx, c.Query, values, types, nil, nil))
	defer rows.Close()
	var key, value, headers []byte
	into, err := columns(rows.FieldDescriptions(), &key, &value, &headers)
	if err != nil {
		rows.Close()
		if rows.Err() != nil { // a failed query has no columns, so its own error is returned
			err = rows.Err()
		}
		return failed(err)
	}
	var own error
	_, err = pgx.ForEachRow(rows, into, func() error {
		if parsed, ok := headersOf(headers); ok {
			own = receive(event.Message{Key: key, Value: value, Headers: parsed}, "")
		} else {
			own = receive(event.Message{}, reasonHeaders)
		}
		return own
	})
	if own != nil {
		return own
	}
	return failed(err)
}

// columns returns the destinations of the columns of the result. Columns are found by name. If the
// result does not have both the column key and the column value, it must have two or three columns.
// These are then the key, the value and the headers, in this order.
func columns(fields []pgconn.FieldDescription, key, value, headers *[]byte) ([]any, error) {
	at := map[string]int{}
	for i := range fields {
		name := strings.ToLower(fields[i].Name)
		if _, twice := at[name]; twice && (name == columnKey || name == columnValue || name == columnHeaders) {
			return nil, errclass.Text("--outbox-query (OUTBOX_QUERY): returns two columns that are called " + name)
		}
		at[name] = i
	}
	into := make([]any, len(fields))
	_, keyed := at[columnKey]
	_, valued := at[columnValue]
	switch {
	case keyed && valued:
		into[at[columnKey]], into[at[columnValue]] = key, value
		if i, found := at[columnHeaders]; found {
			into[i] = headers
		}
	case len(fields) == 2:
		into[0], into[1] = key, value
	case len(fields) == 3:
		into[0], into[1], into[2] = key, value, headers
	default:
		return nil, errclass.Text("--outbox-query (OUTBOX_QUERY): must return the columns key, value and, where the format needs them, headers")
	}
	return into, nil
}

const reasonHeaders = `its column headers does not hold a JSON object, such as {"eventType": "FundsCredited"}`

// headersOf parses headers from a JSON object. A string becomes its text, null becomes a null
// header value, and any other member becomes its JSON. It returns false if the text is no JSON object.
func headersOf(text []byte) (headers []event.Header, ok bool) {
	if text == nil {
		return nil, true
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return nil, false
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		h := event.Header{Key: name, Value: members[name]}
		var plain *string
		if err := json.Unmarshal(h.Value, &plain); err == nil {
			h.Value = nil
			if plain != nil {
				h.Value = []byte(*plain)
			}
		}
		headers = append(headers, h)
	}
	return headers, true
}

// failed names the flag in the error if the query itself is wrong. It does not name the flag if the
// server fails.
func failed(err error) error {
	var server *pgconn.PgError
	switch {
	case err == nil, errors.As(err, new(errclass.Text)): // the text names the flag
		return err
	case errors.As(err, &server) && strings.HasPrefix(server.Code, "42"):
		return fmt.Errorf("--outbox-query (OUTBOX_QUERY): %w", err)
	default:
		return fmt.Errorf("query the outbox: %w", err)
	}
}
