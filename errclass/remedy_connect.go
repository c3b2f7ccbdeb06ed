package errclass

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/twmb/franz-go/pkg/kerr"
)

// brokerText returns the text of a Kafka error code. It names the setting to change if the code
// does not make that clear.
func brokerText(e *kerr.Error) string {
	text := e.Error()
	switch e.Code {
	case kerr.IllegalSaslState.Code:
		text += " (this listener takes no SASL: leave out --sasl-mechanism (KAFKA_SASL_MECHANISM), " +
			"or give the port of a SASL listener in --brokers (KAFKA_BROKERS))"
	case kerr.UnsupportedSaslMechanism.Code:
		text += " (give a mechanism that this listener has in --sasl-mechanism (KAFKA_SASL_MECHANISM))"
	case kerr.InvalidTimestamp.Code: // Kafka 4.0 refuses records that are more than an hour ahead
		text += " (compare the clock of this machine with that of the brokers)"
	}
	return text
}

// notKafka recognises the response of a server that is not a Kafka broker. The client reads the
// first bytes of the response as its size, and this number is only in the error's text.
func notKafka(err error) (text string, ok bool) {
	said, ok := strings.CutPrefix(err.Error(), "invalid large response size ")
	if !ok {
		return "", false
	}
	const port = "give the port of a Kafka listener in --brokers (KAFKA_BROKERS)"
	switch {
	case strings.HasPrefix(said, "1157627904 "): // 'E' and the length of a PostgreSQL error
		return "the server at this address is PostgreSQL, not Kafka: " + port, true
	case strings.Contains(said, "HTTP"):
		return "the server at this address is an HTTP server, not Kafka: " + port, true
	case strings.Contains(said, "tls alert"):
		return "this listener expects TLS: give --tls (KAFKA_TLS), or the port of a plain listener in --brokers (KAFKA_BROKERS)", true
	}
	return "the answer is not that of a Kafka broker: " + port, true
}

// silentServer returns a hint if the server accepted the connection but sent nothing. A Kafka
// broker does so, because it reads the first message as the start of a long request and waits for
// the rest.
func silentServer(why string) string {
	for _, step := range []string{"tls error: ", "failed to receive message: "} {
		if strings.HasPrefix(why, step+context.DeadlineExceeded.Error()) {
			return " (the server accepts connections, but it does not answer as PostgreSQL: check host and port)"
		}
	}
	return ""
}

var scheme = regexp.MustCompile(`^((?:jdbc:)?[a-z][a-z0-9+.-]{0,20})://`)

// foreignScheme returns the scheme of a URL that is not for PostgreSQL.
func foreignScheme(url string) (string, bool) {
	found := scheme.FindStringSubmatch(strings.ToLower(strings.TrimSpace(url)))
	if len(found) < 2 || found[1] == "postgres" || found[1] == "postgresql" {
		return "", false
	}
	return found[1], true
}

// withoutTLSRefusals removes the errors that only say that the server has no TLS, if the server
// then answered without TLS. The default is sslmode=prefer, which tries TLS first and then no TLS.
// Only the error of the second attempt shows the problem.
func withoutTLSRefusals(attempts []error) []error {
	var answer *pgconn.PgError
	if !errors.As(errors.Join(attempts...), &answer) {
		return attempts
	}
	var kept []error
	for _, err := range attempts {
		if !strings.HasSuffix(err.Error(), "server refused TLS connection") {
			kept = append(kept, err)
		}
	}
	return kept
}
