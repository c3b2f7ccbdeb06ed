package event

import "unicode/utf8"

// correlationHeaders are the Kafka headers that may carry a correlation id, in
// order of preference.
var correlationHeaders = [...]string{"correlationId", "correlation_id"}

// headerCorrelationID returns the correlation id a message's headers carry, or "".
// Of several headers with one name the first counts. A value that is empty, has a
// NUL or is no UTF-8 counts as none: it is a hint beside the event, not a part of
// it, so it never makes an event malformed.
func headerCorrelationID(headers []Header) string {
	for _, name := range correlationHeaders {
		if value := firstHeader(headers, name); len(value) > 0 && !hasNUL(value) && utf8.Valid(value) {
			return string(value)
		}
	}
	return ""
}

// firstHeader returns the value of the first header of that name, nil without one.
func firstHeader(headers []Header, name string) []byte {
	for i := range headers {
		if headers[i].Key == name {
			return headers[i].Value
		}
	}
	return nil
}
