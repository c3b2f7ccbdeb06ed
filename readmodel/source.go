package readmodel

import (
	"context"
	"fmt"
	"strings"
)

// SourceTopic is a topic from which rows of a projection may have come.
type SourceTopic struct {
	Name      string
	Recreated bool // there was an earlier topic with this name
	Processed bool // records were processed, or the positions that would show this were deleted
}

// LoadTopics returns the topics that a projection has claimed or has positions of, sorted by name.
func LoadTopics(ctx context.Context, db Querier, name string) ([]SourceTopic, error) {
	return All[SourceTopic](ctx, db, "load the topics", "source_topics", name)
}

// CheckTopic returns an Unfit if a projection has consumed events, but none from the topic.
func CheckTopic(ctx context.Context, db Querier, name, topic string) error {
	topics, err := LoadTopics(ctx, db, name)
	if err != nil {
		return err
	}
	var from []string
	for _, t := range topics {
		if t.Name == topic {
			return nil
		}
		if t.Processed {
			from = append(from, t.Name)
		}
	}
	if len(from) > 0 {
		return Unfit(fmt.Sprintf("the rows of %s came from topic %s, and --topic (KAFKA_TOPIC) is %s: accounts of two topics would be mixed, "+
			"and could not be rebuilt; if that is wanted, type --another-topic", name, strings.Join(from, ", "), topic))
	}
	return nil
}
