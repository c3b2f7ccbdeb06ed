package errclass

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Kafka decides about an error of franz-go, wrapped in any depth. It never
// answers Isolate: what a broker refuses says nothing about the event. A record
// that is too large is told by TooLarge, which is to be asked first. Contexts
// are treated as in Postgres. A nil error is Unknown.
func Kafka(err error) Class {
	return worst(err, kafkaNode, networkNode).class
}

// TooLarge reports whether the broker or the client refused a record for its
// size. Such a record will never pass as it is.
func TooLarge(err error) bool {
	return errors.Is(err, kerr.MessageTooLarge) || errors.Is(err, kerr.RecordListTooLarge)
}

// kafkaNode judges the errors of kerr and kgo.
func kafkaNode(node error) (finding, bool) {
	switch e := node.(type) { //nolint:errorlint // one node is meant, not its chain
	case *kerr.Error:
		return finding{class: kafkaCode(e), reason: kafkaReason(e)}, true
	case *kgo.ErrDataLoss:
		return finding{class: RetryLoud, reason: "data_loss"}, true
	case *kgo.ErrDecompressTooLarge:
		return finding{class: RetryLoud, reason: "decompress"}, true
	case *kgo.ErrFirstReadEOF:
		// The broker hung up on the first bytes: TLS or SASL set on one side only.
		return finding{class: RetryLoud, reason: "first_read_eof"}, true
	}
	return kafkaSentinel(node)
}

func kafkaSentinel(node error) (finding, bool) {
	switch node {
	// These two are joined to the last error of the attempts, where there is one.
	case kgo.ErrRecordTimeout:
		return finding{class: Retry, reason: "timeout", vague: true}, true
	case kgo.ErrRecordRetries:
		return finding{class: Retry, reason: "record_retries", vague: true}, true
	case kgo.ErrMaxBuffered:
		return finding{class: Retry, reason: "max_buffered"}, true
	case kgo.ErrAborting:
		return finding{class: Retry, reason: "aborting"}, true
	case kgo.ErrClientClosed:
		return finding{class: Retry, reason: "closed"}, true
	case kgo.ErrMaxDecompress:
		return finding{class: RetryLoud, reason: "decompress"}, true
	}
	// Unexported errors of the client (a broker that left, an unknown controller)
	// are known by what the client itself would do. Only leaves are asked, so that
	// a wrapper does not hide what stands below it.
	if len(children(node)) == 0 && kgo.IsRetryableBrokerErr(node) {
		if f, ok := networkNode(node); ok {
			return f, true
		}
		return finding{class: Retry, reason: "broker"}, true
	}
	return finding{}, false
}

// kafkaCode decides about one Kafka error code. A code that is new since the
// table was written is taken at the protocol's word.
func kafkaCode(e *kerr.Error) Class {
	if c, ok := kafkaCodes[e.Code]; ok {
		return c
	}
	if e.Retriable {
		return Retry
	}
	return Unknown
}

// kafkaReason is the protocol's name of the code.
func kafkaReason(e *kerr.Error) string {
	if known := kerr.TypedErrorForCode(e.Code); known != nil {
		return known.Message
	}
	return "unknown"
}
