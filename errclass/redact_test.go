package errclass_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
)

// refusal returns an error of PostgreSQL for a refused row. The message, the detail, the hint, the
// query and the context all contain secret text.
func refusal(code string) *pgconn.PgError {
	return &pgconn.PgError{
		Severity: "ERROR", Code: code,
		Message: "secret-message", Detail: "Failing row contains (secret-detail)", Hint: "secret-hint",
		InternalQuery: "SELECT secret-query", Where: "secret-where",
		TableName: "account_balance", ConstraintName: "balance_check",
	}
}

type vouched struct{}

func (vouched) Error() string    { return "secret" }
func (vouched) SafeText() string { return "position moved in partition 3" }

type foreign struct{}

func (foreign) Error() string { return "secret" }

func TestSafe(t *testing.T) {
	denied := &pgconn.PgError{Severity: "ERROR", Code: "42501", Message: "permission denied for table account_balance"}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"check", refusal("23514"), "ERROR 23514 check_violation (table account_balance, constraint balance_check)"},
		{
			"an id twice", &pgconn.PgError{Severity: "ERROR", Code: "23505", TableName: "dlq_action", ConstraintName: "dlq_action_pkey"},
			"ERROR 23505 unique_violation (table dlq_action, constraint dlq_action_pkey): the sequence of its ids is behind its rows, as after logical replication; " +
				"as the owner, run SELECT setval(pg_get_serial_sequence('dlq_action', 'id'), max(id)) FROM dlq_action",
		},
		{"out of range", refusal("22003"), "ERROR 22003 numeric_value_out_of_range (table account_balance, constraint balance_check)"},
		{"trigger", refusal("P0001"), "ERROR P0001 raise_exception (table account_balance, constraint balance_check)"},
		{"odd code", refusal("2300\n"), "ERROR sqlstate (table account_balance, constraint balance_check)"},
		{"grant", denied, "ERROR 42501: permission denied for table account_balance"},
		{
			"a full disk while a session begins",
			&pgconn.PgError{Severity: "FATAL", Code: "XX000", Message: "could not write init file"}, "FATAL XX000: could not write init file",
		},
		{"an internal error of a statement", refusal("XX000"), "ERROR XX000 (table account_balance, constraint balance_check)"},
		{
			"our words", fmt.Errorf("partition 3: write batch: %w", denied),
			"partition 3: write batch: ERROR 42501: permission denied for table account_balance",
		},
		{"our words behind", fmt.Errorf("wrote (%w) 2 of 3", io.EOF), "wrote (EOF) 2 of 3"},
		{
			"two", fmt.Errorf("%w, then %w", refusal("23505"), context.DeadlineExceeded),
			"ERROR 23505 unique_violation (table account_balance, constraint balance_check), then context deadline exceeded",
		},
		{
			"twice", fmt.Errorf("%v: %w", refusal("23505"), refusal("23505")), //nolint:errorlint // the mistake that must not leak
			"ERROR 23505 unique_violation (table account_balance, constraint balance_check)" +
				": ERROR 23505 unique_violation (table account_balance, constraint balance_check)",
		},
		{
			"joined", errors.Join(io.EOF, denied, io.EOF),
			"EOF; ERROR 42501: permission denied for table account_balance",
		},
		{"sentinel of ours", fmt.Errorf("partition 3: %w", errors.New("another owner")), "partition #: another owner"},
		{"vouched", fmt.Errorf("partition 3: %w", vouched{}), "partition 3: position moved in partition 3"},
		{"foreign", fmt.Errorf("read: %w", foreign{}), "read: error of type errclass_test.foreign"},
		{
			"number", fmt.Errorf("read: %w", &strconv.NumError{Func: "x", Num: "secret", Err: strconv.ErrSyntax}),
			"read: invalid syntax",
		},
		{
			"scan",
			pgx.ScanArgError{FieldName: "balance", Err: errors.New("secret")},
			"column balance cannot be read into what this build expects",
		},
		{"refused", refused, "dial tcp: connection refused"},
		{"resolve", &net.DNSError{Name: "db.bank", Err: "no such host"}, "lookup db.bank: no such host"},
		{
			"kafka", fmt.Errorf("publish to account-events.dlq: %w", kerr.TopicAuthorizationFailed),
			"publish to account-events.dlq: " + kerr.TopicAuthorizationFailed.Error(),
		},
		{
			"SASL on a plain listener", fmt.Errorf("reach: %w", kerr.IllegalSaslState),
			"reach: " + kerr.IllegalSaslState.Error() + " (this listener takes no SASL: leave out --sasl-mechanism (KAFKA_SASL_MECHANISM), " +
				"or give the port of a SASL listener in --brokers (KAFKA_BROKERS))",
		},
		{
			"group", &kgo.ErrGroupSession{Err: kerr.InvalidGroupID},
			"unable to join group session: " + kerr.InvalidGroupID.Error(),
		},
		{"lines", fmt.Errorf("a\nb\x1b[31m: %w", io.EOF), "a b [31m: EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := errclass.Safe(c.err)
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if strings.Contains(got, "secret") {
				t.Errorf("leaks: %s", got)
			}
		})
	}
}

func TestSafeIsBounded(t *testing.T) {
	err := fmt.Errorf("%s: %w", strings.Repeat("ü", 10_000), io.EOF)
	if got := errclass.Safe(err); len(got) > 700 || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes, ends in %q", len(got), got[len(got)-10:])
	}
}

// TestSafeHidesEncodedValues shows that Safe hides the value in pgx's error about a value that
// cannot be encoded.
func TestSafeHidesEncodedValues(t *testing.T) {
	types := pgtype.NewMap()
	for _, value := range []any{"1234.56", "Mrs. Miller", []string{"acc-42", "Miller"}, 9876543210, uint64(98765432101234)} {
		_, err := types.Encode(pgtype.Int4OID, pgtype.BinaryFormatCode, value, nil)
		if err == nil {
			t.Fatalf("%v was encoded", value)
		}
		safe := errclass.Safe(fmt.Errorf("failed to encode args[%d]: %w", 0, err))
		for _, part := range []string{"1234", "56", "Miller", "42", "9876"} {
			if strings.Contains(safe, part) {
				t.Errorf("%q leaks from %v", part, safe)
			}
		}
	}
}

func TestSafeHidesConnectionStrings(t *testing.T) {
	for _, c := range []struct{ url, says string }{
		{"postgres://app:hunter2@db:notaport/bank", "port"},
		{"postgres://app:hun/ter2@db:5432/bank", "port"},
		{"postgres://app:hunter2@[::1/bank", "parse as URL"},
		{"postgres://app:hunter2@db/bank?sslmode=hunter2", "TLS"},
		{"postgres://app:hunter2@db/bank?sslmode=verify-full&sslrootcert=/hunter2.pem", "TLS"},
		{"postgres://app:hunter2@db/bank?target_session_attrs=hunter2", "target_session_attrs"},
		{"postgres://app:hunter2@db/bank?connect_timeout=hunter2", "connect_timeout"},
		{"postgres://app:hunter2@db/bank?pool_max_conns=hunter2", "pool_max_conns"},
		{"host=db password=hunter2 user", "keyword/value"},
		{"host=db password='hunter2", "keyword/value"},
		{"postgres://app:hunter2\x7f%zz@db/bank", ""},
		{"app:hunter2@db", ""},
	} {
		t.Run(c.url, func(t *testing.T) {
			_, err := pgxpool.ParseConfig(c.url)
			if err == nil {
				t.Fatal("was parsed")
			}
			safe := errclass.Safe(fmt.Errorf("--database-url: %w", err))
			t.Log(safe)
			for _, secret := range []string{"hunter2", "ter2", "hun"} {
				if strings.Contains(safe, secret) {
					t.Errorf("leaks %q: %s", secret, safe)
				}
			}
			if !strings.Contains(safe, c.says) || !strings.HasPrefix(safe, "--database-url: ") {
				t.Errorf("does not say %q: %s", c.says, safe)
			}
		})
	}
}
