package errclass_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/puddle/v2"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
)

func dial(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }

var refused = dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))

func TestCommonErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		class  errclass.Class
		reason string
	}{
		{"attempt deadline", context.DeadlineExceeded, errclass.Retry, "timeout"},
		{"socket deadline", os.ErrDeadlineExceeded, errclass.Retry, "timeout"},
		{"canceled", context.Canceled, errclass.Retry, "canceled"},
		{"eof", io.EOF, errclass.Retry, "eof"},
		{"unexpected eof", io.ErrUnexpectedEOF, errclass.Retry, "eof"},
		{"refused", refused, errclass.Retry, "connect"},
		{"dial timeout", dial(os.ErrDeadlineExceeded), errclass.Retry, "timeout"},
		{"reset", &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, errclass.Retry, "network"},
		{"broken pipe", syscall.EPIPE, errclass.Retry, "network"},
		{"closed", net.ErrClosed, errclass.Retry, "closed"},
		{"name", &net.DNSError{Err: "no such host", Name: "db", IsNotFound: true}, errclass.Retry, "resolve"},
		{"name in dial", dial(&net.DNSError{Err: "no such host", Name: "db"}), errclass.Retry, "resolve"},
		{"name timeout", &net.DNSError{IsTimeout: true}, errclass.Retry, "timeout"},
		{"authority", x509.UnknownAuthorityError{}, errclass.RetryUnready, "tls"},
		{"expired", &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{}}, errclass.RetryUnready, "tls"},
		{"not tls", tls.RecordHeaderError{Msg: "x"}, errclass.RetryUnready, "tls"},
		{"alert", &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, errclass.RetryUnready, "tls"},
		{"certificate in dial", dial(x509.UnknownAuthorityError{}), errclass.RetryUnready, "tls"},
		{"missing file", &fs.PathError{Op: "open", Path: "ca.pem", Err: fs.ErrNotExist}, errclass.RetryUnready, "file"},
		{"nobody knows", errors.New("SQLSTATE 23505 duplicate key"), errclass.Unknown, "unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, err := range []error{c.err, wrapDeep(c.err)} {
				if got := errclass.Postgres(err); got != c.class {
					t.Errorf("Postgres: %v, want %v", got, c.class)
				}
				if got := errclass.Kafka(err); got != c.class {
					t.Errorf("Kafka: %v, want %v", got, c.class)
				}
				if got := errclass.Reason(err); got != c.reason {
					t.Errorf("Reason: %s, want %s", got, c.reason)
				}
			}
		})
	}
}

func TestPostgresClientErrors(t *testing.T) {
	data := &pgconn.PgError{Severity: "ERROR", Code: "23514"}
	for _, c := range []struct {
		name   string
		err    error
		class  errclass.Class
		reason string
	}{
		{"closed pool", puddle.ErrClosedPool, errclass.Retry, "closed"},
		{"closed connection", pgconn.ErrConnClosed, errclass.Retry, "closed"},
		{"connection string", pgconn.NewParseConfigError("x", "y", nil), errclass.RetryUnready, "config"},
		{"column type", pgx.ScanArgError{FieldName: "balance", Err: errors.New("x")}, errclass.RetryUnready, "scan"},
		{"commit of a failed transaction", pgx.ErrTxCommitRollback, errclass.Bug, "commit_rollback"},
		{"standby", pgconn.ErrReadOnlyConnection, errclass.Retry, "not_preferred"},
		{"connect, no cause", &pgconn.ConnectError{}, errclass.Retry, "connect"},
		{"data and an outage", errors.Join(data, io.ErrUnexpectedEOF), errclass.Retry, "eof"},
		{"data and something of ours", fmt.Errorf("%w: %w", errors.New("flush"), data), errclass.Isolate, "23514"},
		{"two data errors", errors.Join(data, &pgconn.PgError{Code: "22003"}), errclass.Isolate, "23514"},
		{"data, session ended", &pgconn.PgError{Severity: "FATAL", Code: "22023"}, errclass.RetryUnready, "22023"},
		{
			"localized severity", &pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: "ERROR", Code: "22003"},
			errclass.Isolate, "22003",
		},
		{"kafka's", kerr.NotLeaderForPartition, errclass.Unknown, "NOT_LEADER_FOR_PARTITION"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := errclass.Postgres(c.err); got != c.class {
				t.Errorf("class %v, want %v", got, c.class)
			}
			if got := errclass.Reason(c.err); got != c.reason {
				t.Errorf("reason %s, want %s", got, c.reason)
			}
		})
	}
}

func TestKafkaClientErrors(t *testing.T) {
	for _, c := range []struct {
		err    error
		class  errclass.Class
		reason string
	}{
		{kgo.ErrRecordTimeout, errclass.Retry, "timeout"},
		{kgo.ErrRecordRetries, errclass.Retry, "record_retries"},
		{kgo.ErrMaxBuffered, errclass.Retry, "max_buffered"},
		{kgo.ErrAborting, errclass.Retry, "aborting"},
		{kgo.ErrClientClosed, errclass.Retry, "closed"},
		{&kgo.ErrDataLoss{}, errclass.RetryUnready, "data_loss"},
		{&kgo.ErrDecompressTooLarge{}, errclass.RetryUnready, "decompress"},
		{&kgo.ErrFirstReadEOF{}, errclass.RetryUnready, "first_read_eof"},
		{&kgo.ErrGroupSession{Err: kerr.GroupAuthorizationFailed}, errclass.RetryUnready, "GROUP_AUTHORIZATION_FAILED"},
		{
			fmt.Errorf("%w, last err: %w", kgo.ErrRecordTimeout, kerr.TopicAuthorizationFailed),
			errclass.RetryUnready, "TOPIC_AUTHORIZATION_FAILED",
		},
		{&pgconn.PgError{Code: "22003"}, errclass.Unknown, "22003"},
	} {
		if got := errclass.Kafka(c.err); got != c.class {
			t.Errorf("%v: class %v, want %v", c.err, got, c.class)
		}
		if got := errclass.Reason(c.err); got != c.reason {
			t.Errorf("%v: reason %s, want %s", c.err, got, c.reason)
		}
	}
}

func TestNil(t *testing.T) {
	if errclass.Postgres(nil) != errclass.Unknown || errclass.Kafka(nil) != errclass.Unknown ||
		errclass.Reason(nil) != "" || errclass.Safe(nil) != "" {
		t.Error("a nil error is not quietly unknown")
	}
}
