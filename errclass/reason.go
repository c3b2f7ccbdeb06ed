package errclass

// Reason returns a short label for metrics and logs, from a bounded set: a
// SQLSTATE ("57P01"), a Kafka error name ("NOT_ENOUGH_REPLICAS"), an HTTP status
// ("http_503"), or one of
// "timeout", "connect", "resolve", "network", "closed", "eof", "tls", "file",
// "config", "canceled", "unknown" and a few more that name a client's own
// error. It names the node that decided the class. Empty for a nil error.
func Reason(err error) string {
	if err == nil {
		return ""
	}
	return worst(err, postgresNode, kafkaNode, registryNode, networkNode).reason
}
