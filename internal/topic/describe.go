package topic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Describe returns the brokers' description of the topic, and whether the topic exists.
func Describe(ctx context.Context, adm *kadm.Client, topic string) (kadm.TopicDetail, bool, error) {
	details, err := firstAnswer(ctx, func(ctx context.Context) (kadm.TopicDetails, error) {
		return adm.ListTopics(ctx, topic)
	})
	detail := details[topic]
	if err == nil {
		err = detail.Err
	}
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return kadm.TopicDetail{}, false, nil
	case Unauthorized(err):
		return kadm.TopicDetail{}, false, fmt.Errorf("missing ACL: DESCRIBE on topic %s: %w", topic, err)
	case err != nil:
		return kadm.TopicDetail{}, false, fmt.Errorf("describe topic %q: %w", topic, err)
	}
	return detail, true, nil
}

const (
	askAnother = time.Second // a healthy broker answers within this time
	askAtMost  = 6
)

// firstAnswer calls ask and returns the first answer. While there is no answer, it calls ask again
// each time askAnother has passed, up to askAtMost calls. The client then sends the request to
// another broker. A frozen broker accepts a connection but does not answer. Without the repeated
// call, the client would wait for this broker until ctx ends.
func firstAnswer[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, askAtMost)
	again := time.NewTicker(askAnother)
	defer again.Stop()
	asked, waited := 0, 0
	for {
		if asked < askAtMost {
			asked++
			go func() {
				value, err := ask(ctx)
				answers <- answer{value, err}
			}()
		}
		select {
		case a := <-answers:
			waited++
			if !timedOut(a.err) || ctx.Err() != nil || waited == askAtMost {
				return a.value, a.err
			}
		case <-again.C:
		}
	}
}

// timedOut reports whether a broker could not be reached in time.
func timedOut(err error) bool {
	var network net.Error
	return errors.As(err, &network) && network.Timeout()
}

// Unauthorized reports whether a broker refuses a request because an ACL is missing.
func Unauthorized(err error) bool {
	return errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed)
}
