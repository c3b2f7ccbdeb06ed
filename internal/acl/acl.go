// Package acl names the permission of Kafka that is missing, in the words of whoever
// has to grant it.
//
// A broker answers TOPIC_AUTHORIZATION_FAILED and does not say which topic or which
// operation. Explain adds that. Check finds out before anything is refused: it asks
// the brokers what this client may do (KIP-430), so that an instance without work
// tells of a missing permission too.
package acl

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Missing is a permission the brokers do not give.
type Missing struct {
	Operation string // READ, WRITE
	Resource  string // topic, group
	Name      string // of the resource
	Principal string // who lacks it, as far as the client knows its own name
	err       error
}

// Error implements error.
func (m *Missing) Error() string {
	return fmt.Sprintf("missing ACL: %s on %s %s for %s", m.Operation, m.Resource, m.Name, m.Principal)
}

// SafeText vouches for the text: it holds names only.
func (m *Missing) SafeText() string { return m.Error() }

// Unwrap is the broker's own error.
func (m *Missing) Unwrap() error { return m.err }

// Needs is what a running projector uses: READ on the topic and on the group, WRITE
// on the DLQ topic. Each includes DESCRIBE.
type Needs struct {
	Topic, Group, DLQ string
	Principal         string
}

const (
	read  = "READ"
	write = "WRITE"
	topic = "topic"
	group = "group"
)

// Consuming explains an error of a client that consumes. Others come back as they are.
func (n Needs) Consuming(err error) error {
	switch {
	case named(err):
		return err
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		return n.group(err)
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		return n.topic(err)
	}
	return err
}

// Publishing explains an error of a client that publishes dead letters. Others come
// back as they are.
func (n Needs) Publishing(err error) error {
	if errors.Is(err, kerr.TopicAuthorizationFailed) && !named(err) {
		return n.dlq(err)
	}
	return err
}

func named(err error) bool {
	var missing *Missing
	return errors.As(err, &missing)
}

func (n Needs) topic(err error) error { return &Missing{read, topic, n.Topic, n.Principal, err} }
func (n Needs) group(err error) error { return &Missing{read, group, n.Group, n.Principal, err} }
func (n Needs) dlq(err error) error   { return &Missing{write, topic, n.DLQ, n.Principal, err} }
