package event

// correlationHeaders are the Kafka headers that may carry a correlation id, in
// order of preference.
var correlationHeaders = [...]string{"correlationId", "correlation_id"}

// headerCorrelationID returns the correlation id a message's headers carry, or "";
// a header that is the field's own place comes first. Of several headers with one
// name the first counts. A value that is empty, has a NUL or is no UTF-8 counts as
// none: it is a hint beside the event, not a part of it, so it never makes an event
// malformed.
func (r *reading) headerCorrelationID(p *place) string {
	if p.kind == inHeader {
		if id := r.correlationHeader(p.header, p.quoted); id != "" {
			return id
		}
	}
	for _, name := range correlationHeaders {
		if id := r.correlationHeader(name, p.quoted); id != "" {
			return id
		}
	}
	return ""
}

func (r *reading) correlationHeader(name string, quoted bool) string {
	value, _ := firstHeader(r.message.Headers, name)
	if len(value) == 0 {
		return ""
	}
	raw, text, reason := r.plainText(value, quoted)
	if reason != "" || hasNUL(text) {
		return ""
	}
	return keep(raw, text)
}

// firstHeader returns the value of the first header of that name, and whether there
// is one: the value may be null.
func firstHeader(headers []Header, name string) (value []byte, found bool) {
	for i := range headers {
		if headers[i].Key == name {
			return headers[i].Value, true
		}
	}
	return nil, false
}
