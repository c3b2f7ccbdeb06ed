package topic

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
)

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

// Retention returns how long a topic stores records, or nil if there is no time limit.
func Retention(ctx context.Context, adm *kadm.Client, topic string) (*time.Duration, error) {
	settings, err := Settings(ctx, adm, topic)
	return limitOf(settings), err
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
