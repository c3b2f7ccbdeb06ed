package readmodel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"projector/errclass"
	"projector/projection"
)

// SourceTopic is a topic from which rows of a projection may have come.
type SourceTopic struct {
	Name      string
	Recreated bool // there was an earlier topic with this name
}

// LoadTopics returns the topics that a projection has claimed or has positions of, sorted by name.
func LoadTopics(ctx context.Context, db Querier, name string) ([]SourceTopic, error) {
	return All[SourceTopic](ctx, db, "load the topics", "known_topics", name)
}

// CheckTopic returns an errclass.Text if a projection has consumed events, but none from the topic.
func CheckTopic(ctx context.Context, db Querier, name, topic string) error {
	from, err := Texts(ctx, db, "load the sources", "source_topics", name, projection.UnknownTopicIDs(), topic)
	if err != nil {
		return err
	}
	if len(from) > 0 && !slices.Contains(from, topic) {
		return errclass.Text(fmt.Sprintf("the rows of %s came from topic %s, and --topic (KAFKA_TOPIC) is %s: accounts of two topics would be mixed, "+
			"and could not be rebuilt; if that is wanted, type --another-topic", name, strings.Join(from, ", "), topic))
	}
	return nil
}
