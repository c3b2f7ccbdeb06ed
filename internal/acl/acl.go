// Package acl names the Kafka permission that is missing: operation, resource and principal.
//
// For TOPIC_AUTHORIZATION_FAILED, a broker's answer has neither the topic nor the operation.
// Consuming and Publishing add the topic and the operation to the error. Check asks the brokers
// what this client may do (KIP-430), so that an instance without work reports a missing permission
// too.
package acl

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Missing is a permission that the client does not have.
type Missing struct {
	Operation string // READ or WRITE
	Resource  string // topic or group
	Name      string // the name of the resource
	Principal string // the user without the permission; empty if the name is not known
	err       error
}

func (m *Missing) Error() string {
	return fmt.Sprintf("missing ACL: %s on %s %s for %s", m.Operation, m.Resource, m.Name, m.Principal)
}

// SafeText implements errclass.Describer. The text has only names, no secrets.
func (m *Missing) SafeText() string { return m.Error() }

func (m *Missing) Unwrap() error { return m.err }

// Needs lists what a running projector accesses. It needs READ on the topic and on the group, and
// WRITE on the DLQ topic. READ and WRITE include DESCRIBE.
type Needs struct {
	Client            *kgo.Client // of the principal
	Topic, Group, DLQ string
	Principal         string
}

const (
	read  = "READ"
	write = "WRITE"
	topic = "topic"
	group = "group"
)

// Consuming returns a *Missing for a permission error of a client that consumes. It returns
// any other error unchanged.
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

// Publishing returns a *Missing for a permission error of a client that publishes dead
// letters. It returns any other error unchanged.
func (n Needs) Publishing(err error) error {
	if errors.Is(err, kerr.TopicAuthorizationFailed) && !named(err) {
		return n.dlq(err)
	}
	return err
}

func named(err error) bool { return errors.As(err, new(*Missing)) }

func (n Needs) topic(err error) error { return &Missing{read, topic, n.Topic, n.Principal, err} }
func (n Needs) group(err error) error { return &Missing{read, group, n.Group, n.Principal, err} }
func (n Needs) dlq(err error) error   { return &Missing{write, topic, n.DLQ, n.Principal, err} }

// Check asks the brokers what this client may do. It returns the joined *Missing errors, with one
// error for each permission that is missing. A broker before Kafka 2.3 does not report permissions.
// Then a permission counts as missing only if the broker refuses the request. For a resource that
// does not exist, nothing counts as missing. Any other error means that the brokers could not be
// asked.
func (n Needs) Check(ctx context.Context) error {
	topics, err := n.checkTopics(ctx)
	if err != nil {
		return err
	}
	group, err := n.checkGroup(ctx)
	if err != nil {
		return err
	}
	return errors.Join(append(topics, group)...)
}

func (n Needs) checkTopics(ctx context.Context) ([]error, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for _, name := range []string{n.Topic, n.DLQ} {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, n.Client)
	if err != nil {
		return nil, err
	}
	var missing []error
	for i := range resp.Topics {
		t := &resp.Topics[i]
		operation, name := kmsg.ACLOperationRead, n.topic
		if t.Topic != nil && *t.Topic == n.DLQ {
			operation, name = kmsg.ACLOperationWrite, n.dlq
		}
		if refuses(t.ErrorCode, t.AuthorizedOperations, operation, kerr.TopicAuthorizationFailed) {
			missing = append(missing, name(kerr.TopicAuthorizationFailed))
		}
	}
	return missing, nil
}

func (n Needs) checkGroup(ctx context.Context) (missing, err error) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups, req.IncludeAuthorizedOperations = []string{n.Group}, true
	resp, err := req.RequestWith(ctx, n.Client)
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed): // DESCRIBE on the group is missing
		return n.group(err), nil
	case err != nil:
		return nil, err
	}
	for i := range resp.Groups {
		g := &resp.Groups[i]
		if refuses(g.ErrorCode, g.AuthorizedOperations, kmsg.ACLOperationRead, kerr.GroupAuthorizationFailed) {
			return n.group(kerr.GroupAuthorizationFailed), nil
		}
	}
	return nil, nil
}

// notReported is the value that a broker sends instead of the permissions if it does not report
// them.
const notReported = math.MinInt32

// refuses reports whether a broker's answer does not permit the operation. The bits of allowed are
// the permitted operations.
func refuses(code int16, allowed int32, operation kmsg.ACLOperation, unauthorized *kerr.Error) bool {
	if code != 0 {
		return code == unauthorized.Code
	}
	return allowed != notReported && allowed&(1<<operation) == 0
}
