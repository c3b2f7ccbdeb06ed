package readmodel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"projector/projection"
	"projector/sql"
)

// OtherTopicError says that the rows of a projection come from other topics than the one that
// is to be read.
type OtherTopicError struct {
	Projection, Topic string
	From              []string
}

// Error implements error and names the remedy.
func (e *OtherTopicError) Error() string {
	return fmt.Sprintf("the rows of %s came from topic %s, and --topic (KAFKA_TOPIC) is %s: accounts of two topics would be mixed, "+
		"and could not be rebuilt; if that is wanted, type --another-topic", e.Projection, strings.Join(e.From, ", "), e.Topic)
}

// SafeText vouches for the text: it holds no data.
func (e *OtherTopicError) SafeText() string { return e.Error() }

// CheckTopic returns an *OtherTopicError when a projection has rows, and none of them came from
// the topic.
func CheckTopic(ctx context.Context, db Querier, name, topic string) error {
	rows, err := db.Query(ctx, sql.Query("source_topics"), name, projection.UnknownTopicIDs(), topic)
	if err != nil {
		return fmt.Errorf("load the sources: %w", err)
	}
	from, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("load the sources: %w", err)
	}
	if len(from) > 0 && !slices.Contains(from, topic) {
		return &OtherTopicError{Projection: name, Topic: topic, From: from}
	}
	return nil
}
