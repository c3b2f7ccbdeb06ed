package acl

import (
	"context"
	"errors"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Check asks the brokers what this client may do, and answers every permission that
// is missing as one error of *Missing each, joined. Brokers that do not tell (before
// 2.3), and resources that do not exist, lack nothing. An error of another kind says
// that the brokers could not be asked.
func (n Needs) Check(ctx context.Context, client *kgo.Client) error {
	topics, err := n.checkTopics(ctx, client)
	if err != nil {
		return err
	}
	group, err := n.checkGroup(ctx, client)
	if err != nil {
		return err
	}
	return errors.Join(append(topics, group)...)
}

func (n Needs) checkTopics(ctx context.Context, client *kgo.Client) ([]error, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	for _, name := range []string{n.Topic, n.DLQ} {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, client)
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

func (n Needs) checkGroup(ctx context.Context, client *kgo.Client) (missing, err error) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Groups, req.IncludeAuthorizedOperations = []string{n.Group}, true
	resp, err := req.RequestWith(ctx, client)
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed): // its coordinator may not even be looked up
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

// notTold is what a broker answers that does not say what is allowed.
const notTold = math.MinInt32

// refuses reports whether a broker's answer lacks the operation: allowed has a bit for
// each operation.
func refuses(code int16, allowed int32, operation kmsg.ACLOperation, unauthorized *kerr.Error) bool {
	if code != 0 {
		return code == unauthorized.Code
	}
	return allowed != notTold && allowed&(1<<operation) == 0
}
