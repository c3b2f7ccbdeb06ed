package errclass_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kerr"

	"projector/errclass"
)

func TestLabelsAreStable(t *testing.T) {
	want := []struct {
		class   errclass.Class
		label   string
		unready bool
	}{
		{errclass.Unknown, "unknown", false},
		{errclass.Isolate, "isolate", false},
		{errclass.Retry, "retry", false},
		{errclass.RetryReset, "retry_reset", false},
		{errclass.RetryUnready, "retry_loud", true},
		{errclass.Bug, "bug", false},
		{errclass.Class(200), "unknown", false},
	}
	for _, w := range want {
		c := w.class
		if c.String() != w.label || c.Unready() != w.unready {
			t.Errorf("%v: unready %v; want %+v", c, c.Unready(), w)
		}
	}
}

// TestEverySQLState compares the class of every PostgreSQL error code with sqlstates.txt.
func TestEverySQLState(t *testing.T) {
	list, err := os.ReadFile("sqlstates.txt")
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] == "#" {
			continue
		}
		tested++
		code, want, name := fields[0], fields[1], fields[2]
		err := &pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: code}
		if got := errclass.Postgres(err).String(); got != want {
			t.Errorf("%s %s: %s, sqlstates.txt has %s", code, name, got, want)
		}
		if got := errclass.Postgres(wrapDeep(err)).String(); got != want {
			t.Errorf("%s %s wrapped: %s, want %s", code, name, got, want)
		}
		if got := errclass.Reason(wrapDeep(err)); got != code {
			t.Errorf("%s: reason %s", code, got)
		}
	}
	if tested < 250 {
		t.Errorf("only %d codes tested", tested)
	}
}

func wrapDeep(err error) error {
	for i := range 5 {
		err = fmt.Errorf("layer %d: %w", i, err)
	}
	return errors.Join(err)
}

// TestOnlyDataErrorsIsolate shows that only the SQLSTATE classes 22 and 23, and a row too large for
// an index, isolate an event.
func TestOnlyDataErrorsIsolate(t *testing.T) {
	const symbols = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, a := range symbols {
		for _, b := range symbols {
			for _, rest := range []string{"000", "001", "P01", "003"} {
				code := string(a) + string(b) + rest
				isolated := errclass.Postgres(&pgconn.PgError{Severity: "ERROR", Code: code}) == errclass.Isolate
				if data := code[:2] == "22" || code[:2] == "23" || code == "54000"; isolated != data {
					t.Errorf("%s: isolated %v", code, isolated)
				}
			}
		}
	}
}

// PostgreSQL reports a limit of the whole server with the same SQLSTATE as a row that is too large for
// an index. No event is the cause, so none may be dead-lettered.
func TestALimitOfTheServerIsolatesNoEvent(t *testing.T) {
	for file, want := range map[string]errclass.Class{
		"nbtutils.c": errclass.Isolate, "indextuple.c": errclass.Isolate, "hio.c": errclass.Isolate, "": errclass.Isolate,
		"varsup.c": errclass.RetryUnready, "multixact.c": errclass.RetryUnready,
		"bufmgr.c": errclass.RetryUnready, "md.c": errclass.RetryUnready,
	} {
		err := &pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "54000", File: file}
		if got := errclass.Postgres(wrapDeep(err)); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
}

func TestOddSQLStatesAreUnknown(t *testing.T) {
	for _, code := range []string{"", "2", "22", "220031", "22 03", "23\x0014", "22a03"} {
		err := &pgconn.PgError{Severity: "ERROR", Code: code}
		if got := errclass.Postgres(err); got != errclass.Unknown {
			t.Errorf("%q: %v", code, got)
		}
		if got := errclass.Reason(err); got != "sqlstate" {
			t.Errorf("%q: reason %q", code, got)
		}
	}
}

// kafkaDecisions lists codes whose class does not follow from the protocol, but was chosen for this
// program.
var kafkaDecisions = map[string]errclass.Class{
	"UNKNOWN_SERVER_ERROR":         errclass.Unknown,
	"OFFSET_OUT_OF_RANGE":          errclass.RetryUnready,
	"CORRUPT_MESSAGE":              errclass.Retry,
	"UNKNOWN_TOPIC_OR_PARTITION":   errclass.RetryUnready,
	"LEADER_NOT_AVAILABLE":         errclass.Retry,
	"NOT_LEADER_FOR_PARTITION":     errclass.Retry,
	"REQUEST_TIMED_OUT":            errclass.Retry,
	"MESSAGE_TOO_LARGE":            errclass.RetryUnready,
	"COORDINATOR_NOT_AVAILABLE":    errclass.Retry,
	"INVALID_TOPIC_EXCEPTION":      errclass.RetryUnready,
	"NOT_ENOUGH_REPLICAS":          errclass.Retry,
	"ILLEGAL_GENERATION":           errclass.Retry,
	"UNKNOWN_MEMBER_ID":            errclass.Retry,
	"REBALANCE_IN_PROGRESS":        errclass.Retry,
	"TOPIC_AUTHORIZATION_FAILED":   errclass.RetryUnready,
	"GROUP_AUTHORIZATION_FAILED":   errclass.RetryUnready,
	"CLUSTER_AUTHORIZATION_FAILED": errclass.RetryUnready,
	"UNSUPPORTED_SASL_MECHANISM":   errclass.RetryUnready,
	"ILLEGAL_SASL_STATE":           errclass.RetryUnready,
	"SASL_AUTHENTICATION_FAILED":   errclass.RetryUnready,
	"POLICY_VIOLATION":             errclass.RetryUnready,
	"INVALID_REQUEST":              errclass.Bug,
	"KAFKA_STORAGE_ERROR":          errclass.Retry,
	"UNKNOWN_TOPIC_ID":             errclass.RetryUnready,
	"INCONSISTENT_TOPIC_ID":        errclass.RetryUnready,
	"FENCED_INSTANCE_ID":           errclass.RetryUnready,
	"THROTTLING_QUOTA_EXCEEDED":    errclass.Retry,
	"INVALID_RECORD":               errclass.RetryUnready,
}

// TestEveryKafkaCode compares the class of every error code with testdata/kafkacodes.txt. It fails if
// franz-go has a new code, or classifies one otherwise. The class of the code must then be decided.
func TestEveryKafkaCode(t *testing.T) {
	list, err := os.ReadFile("testdata/kafkacodes.txt")
	if err != nil {
		t.Fatal(err)
	}
	decided := slices.Collect(strings.Lines(string(list)))[2:] // after the comment
	seen := 0
	for code := int16(-1); code < 1000; code++ {
		e := kerr.TypedErrorForCode(code)
		if e == nil || e.Code != code {
			continue // 0, or not an error in franz-go
		}
		class := errclass.Kafka(e)
		line := slices.Index(decided, fmt.Sprintln(code, class, e.Message))
		if line < 0 {
			t.Errorf("kafkacodes.txt does not say that %d %s is %s", code, e.Message, class)
		} else {
			decided = slices.Delete(decided, line, line+1)
		}
		if class == errclass.Isolate {
			t.Errorf("%s: a broker's refusal says nothing about the event", e.Message)
		}
		if want, ok := kafkaDecisions[e.Message]; ok {
			seen++
			if class != want {
				t.Errorf("%s: %v, want %v", e.Message, class, want)
			}
		}
		if got := errclass.Kafka(wrapDeep(e)); got != class {
			t.Errorf("%s wrapped: %v, want %v", e.Message, got, class)
		}
		if got := errclass.Reason(wrapDeep(e)); got != e.Message {
			t.Errorf("%s: reason %s", e.Message, got)
		}
	}
	if len(decided) > 0 {
		t.Errorf("kafkacodes.txt says otherwise: %q", decided)
	}
	if seen != len(kafkaDecisions) {
		t.Errorf("%d of %d decisions tested", seen, len(kafkaDecisions))
	}
}

func TestNewKafkaCodeFollowsTheProtocol(t *testing.T) {
	for retriable, want := range map[bool]errclass.Class{true: errclass.Retry, false: errclass.Unknown} {
		if got := errclass.Kafka(&kerr.Error{Message: "NEW", Code: 9999, Retriable: retriable}); got != want {
			t.Errorf("retriable %v: %v, want %v", retriable, got, want)
		}
	}
}

func TestTooLarge(t *testing.T) {
	for err, want := range map[error]bool{
		wrapDeep(kerr.MessageTooLarge): true, kerr.RecordListTooLarge: true,
		kerr.NotEnoughReplicas: false, errors.New("MESSAGE_TOO_LARGE"): false,
	} {
		if got := errclass.TooLarge(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}
