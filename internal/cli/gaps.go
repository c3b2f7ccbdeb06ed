package cli

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"projector/readmodel"
)

type gapsCmd struct {
	balanceFlags
	databaseFlags
	outputFlags
}

// gapDocument is a gap in JSON.
type gapDocument struct {
	AccountID       string  `json:"account_id"`
	ExpectedVersion int64   `json:"expected_version"`
	ReceivedVersion int64   `json:"received_version"`
	Class           string  `json:"class"`
	WaitingEvents   int64   `json:"waiting_events"`
	Since           string  `json:"since"`
	AgeSeconds      float64 `json:"age_seconds"`
}

// Run lists the gaps, the oldest first.
func (c *gapsCmd) Run(ctx context.Context, std *streams) error {
	if err := c.validate(); err != nil {
		return err
	}
	pool, err := openReadModel(ctx, &c.databaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	lines := newJSONLines(std.out)
	t := newTable(std.out, "ACCOUNT", column{name: "ACCOUNT", width: 20}, column{name: "EXPECTED", width: 10, right: true},
		column{name: "RECEIVED", width: 10, right: true}, column{name: "CLASS", width: 20},
		column{name: "WAITING", width: 7, right: true}, column{name: "AGE", width: 6})
	n := 0
	for gap, err := range readmodel.Gaps(ctx, pool) {
		if err != nil {
			return err
		}
		if n++; n == 1 && !c.json() {
			t.header()
		}
		if err := c.print(lines, t, gap); err != nil {
			return err
		}
	}
	if n == 0 && !c.json() {
		_, err := fmt.Fprintln(std.out, "no account waits for an event")
		return err
	}
	if c.json() {
		return lines.flush()
	}
	return t.flush()
}

func (c *gapsCmd) print(lines *jsonLines, t *table, gap readmodel.Hold) error {
	if c.json() {
		return lines.write(gapDocument{
			AccountID: gap.AccountID, ExpectedVersion: gap.Expected, ReceivedVersion: gap.Received, Class: string(gap.Class),
			WaitingEvents: gap.Waiting, Since: timeText(gap.Since),
			AgeSeconds: math.Round(float64(gap.Age)/float64(time.Millisecond)) / 1000,
		})
	}
	t.row(gap.AccountID, strconv.FormatInt(gap.Expected, 10), strconv.FormatInt(gap.Received, 10), string(gap.Class),
		strconv.FormatInt(gap.Waiting, 10), ageText(gap.Age))
	return nil
}
