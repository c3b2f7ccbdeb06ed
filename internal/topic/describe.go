package topic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
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

// These are the names of topic settings.
const (
	CleanupPolicy   = "cleanup.policy"
	MaxMessageBytes = "max.message.bytes"
	retentionMillis = "retention.ms"
)

// Settings returns the settings of a topic, by name.
func Settings(ctx context.Context, adm *kadm.Client, topic string) (map[string]string, error) {
	configs, err := adm.DescribeTopicConfigs(ctx, topic)
	var config kadm.ResourceConfig
	if err == nil {
		config, err = configs.On(topic, nil)
	}
	if err == nil {
		err = config.Err
	}
	if err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, c := range config.Configs {
		values[c.Key] = c.MaybeValue()
	}
	return values, nil
}

// Storage says which records a topic keeps.
type Storage struct {
	Limit     *time.Duration // how long it stores records; nil if there is no time limit
	Compacted bool           // it keeps only the last record of each key
}

// Stored returns which records a topic keeps.
func Stored(ctx context.Context, adm *kadm.Client, topic string) (Storage, error) {
	settings, err := Settings(ctx, adm, topic)
	return Storage{Limit: limitOf(settings), Compacted: strings.Contains(settings[CleanupPolicy], "compact")}, err
}

// limitOf returns the time limit in a topic's settings, or nil if there is none.
func limitOf(values map[string]string) *time.Duration {
	ms, err := strconv.ParseInt(values[retentionMillis], 10, 64)
	if err != nil || ms < 0 || !strings.Contains(values[CleanupPolicy], "delete") {
		return nil
	}
	return new(time.Duration(min(ms, int64(longest/time.Millisecond))) * time.Millisecond)
}

// longest is the longest possible duration.
const longest time.Duration = 1<<63 - 1

// RetentionLeft returns how much longer the first unread record of a partition is stored at least, if
// only the time limit is considered. The record may stay longer, because a segment is deleted only
// when its last record is older than retention. The parameter margin is the number of offsets from
// the start of the log to the position. If it is negative, retention has removed the record already.
// The parameter age is the age of the record. It is nil if no record is unread, or if the age is not
// known. RetentionLeft then returns nil, and also if there is no limit.
func RetentionLeft(margin int64, retention, age *time.Duration) *time.Duration {
	switch {
	case margin < 0:
		return new(time.Duration)
	case retention == nil || age == nil:
		return nil
	}
	return new(max(0, *retention-*age))
}
