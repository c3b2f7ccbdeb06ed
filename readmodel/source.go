package readmodel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"projector/projection"
)

// OtherTopicError means that the rows of a projection were made from other topics than the
// configured one.
type OtherTopicError struct {
	Projection, Topic string
	From              []string
}

// Error implements error and names the remedy.
func (e *OtherTopicError) Error() string {
	return fmt.Sprintf("the rows of %s came from topic %s, and --topic (KAFKA_TOPIC) is %s: accounts of two topics would be mixed, "+
		"and could not be rebuilt; if that is wanted, type --another-topic", e.Projection, strings.Join(e.From, ", "), e.Topic)
}

// SafeText implements errclass.Describer: the text contains no data.
func (e *OtherTopicError) SafeText() string { return e.Error() }

// CheckTopic returns an *OtherTopicError if a projection has consumed events, but none from the
// topic.
func CheckTopic(ctx context.Context, db Querier, name, topic string) error {
	from, err := Texts(ctx, db, "source_topics", name, projection.UnknownTopicIDs(), topic)
	if err != nil {
		return fmt.Errorf("load the sources: %w", err)
	}
	if len(from) > 0 && !slices.Contains(from, topic) {
		return &OtherTopicError{Projection: name, Topic: topic, From: from}
	}
	return nil
}
