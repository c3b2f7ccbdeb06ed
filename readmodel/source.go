package readmodel

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"projector/sql"
)

// rememberSource notes that rows of the projection come from the topic of this id. What is
// noted outlives the position, which may be deleted or set by hand.
func rememberSource(ctx context.Context, tx pgx.Tx, p Partition, topicID string) error {
	_, err := tx.Exec(ctx, sql.Query("source_remember"), p.Projection, p.Topic, topicID)
	return err
}

// LoadSourceIDs reads the ids, as Kafka has them, under which a projection has ever taken
// in a topic. Where brokers have no ids, there is none.
func LoadSourceIDs(ctx context.Context, db querier, projection, topic string) ([]string, error) {
	rows, err := db.Query(ctx, sql.Query("source_ids"), projection, topic)
	if err != nil {
		return nil, fmt.Errorf("load the sources: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("load the sources: %w", err)
	}
	return ids, nil
}
