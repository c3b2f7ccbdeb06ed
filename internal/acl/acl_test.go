package acl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"projector/errclass"
	"projector/internal/acl"
	"projector/internal/devstack"
	"projector/internal/devstack/devtest"
)

var needs = acl.Needs{Topic: "events", Group: "g", DLQ: "events.dlq", Principal: "User:u"}

func TestErrorsAreExplained(t *testing.T) {
	other := errors.New("other")
	for _, test := range []struct {
		explain func(error) error
		err     error
		want    string
	}{
		{needs.Consuming, kerr.TopicAuthorizationFailed, "missing ACL: READ on topic events for User:u"},
		{needs.Consuming, &kgo.ErrGroupSession{Err: kerr.GroupAuthorizationFailed}, "missing ACL: READ on group g for User:u"},
		{needs.Consuming, &kadm.AuthError{Err: kerr.TopicAuthorizationFailed}, "missing ACL: READ on topic events for User:u"},
		{needs.Publishing, fmt.Errorf("publish: %w", kerr.TopicAuthorizationFailed), "missing ACL: WRITE on topic events.dlq for User:u"},
		{needs.Consuming, needs.Publishing(kerr.TopicAuthorizationFailed), "missing ACL: WRITE on topic events.dlq for User:u"},
		{needs.Consuming, other, "other"},
		{needs.Publishing, other, "other"},
	} {
		err := test.explain(test.err)
		if errclass.Safe(err) != test.want {
			t.Errorf("%v: got %q, want %q", test.err, errclass.Safe(err), test.want)
		}
		if errclass.Kafka(err) != errclass.Kafka(test.err) {
			t.Errorf("%v: the class has changed to %s", test.err, errclass.Kafka(err))
		}
	}
	if needs.Consuming(nil) != nil || needs.Publishing(nil) != nil {
		t.Error("no error was explained")
	}
}

func allow(kind kmsg.ACLResourceType, name string, operation kmsg.ACLOperation) kfake.ACL {
	return kfake.ACL{
		Principal: "User:u", Resource: kind, Name: name, Pattern: kmsg.ACLResourcePatternTypeLiteral,
		Operation: operation, Allow: true,
	}
}

func TestCheck(t *testing.T) {
	topicRead := allow(kmsg.ACLResourceTypeTopic, needs.Topic, kmsg.ACLOperationRead)
	groupRead := allow(kmsg.ACLResourceTypeGroup, needs.Group, kmsg.ACLOperationRead)
	write := allow(kmsg.ACLResourceTypeTopic, needs.DLQ, kmsg.ACLOperationWrite)
	const (
		noTopic = "missing ACL: READ on topic events for User:u"
		noGroup = "missing ACL: READ on group g for User:u"
		noWrite = "missing ACL: WRITE on topic events.dlq for User:u"
	)
	for name, test := range map[string]struct {
		acls []kfake.ACL
		want string
	}{
		"all":       {[]kfake.ACL{topicRead, groupRead, write}, ""},
		"none":      {nil, noTopic + "\n" + noWrite + "\n" + noGroup},
		"no topic":  {[]kfake.ACL{groupRead, write}, noTopic},
		"no group":  {[]kfake.ACL{topicRead, write}, noGroup},
		"no write":  {[]kfake.ACL{topicRead, groupRead}, noWrite},
		"look only": {[]kfake.ACL{groupRead, write, allow(kmsg.ACLResourceTypeTopic, needs.Topic, kmsg.ACLOperationDescribe)}, noTopic},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := devtest.Fake(t, devstack.FakeOptions{More: []kfake.Opt{
				kfake.SeedTopics(1, needs.Topic, needs.DLQ), kfake.EnableSASL(), kfake.EnableACLs(), kfake.User("PLAIN", "u", "p", test.acls...),
			}})
			needs := needs
			needs.Client = devtest.Client(t, fake.Addrs(), kgo.SASL(plain.Auth{User: "u", Pass: "p"}.AsMechanism()))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			got := ""
			if err := needs.Check(ctx); err != nil {
				got = err.Error()
				if errclass.Kafka(err) != errclass.RetryUnready || !strings.Contains(errclass.Safe(err), "missing ACL") {
					t.Errorf("class %s, text %q", errclass.Kafka(err), errclass.Safe(err))
				}
			}
			if lines(got) != lines(test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The function lines sorts the lines of a text, so that tests do not depend on the order of the
// lines.
func lines(text string) string {
	all := strings.Split(text, "\n")
	slices.Sort(all)
	return strings.Join(all, "\n")
}
