package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"projector/readmodel"
)

// accountCmd are the commands about one account.
type accountCmd struct {
	Show accountShowCmd `cmd:"" help:"Show an account: its state, its hole and the events that wait behind it."`
	Skip accountSkipCmd `cmd:"" help:"Pass over one version of an account on purpose: only the one it waits for."`
}

// openReadModel connects to the read model, or fails in time for a person who waits.
func openReadModel(ctx context.Context, f *databaseFlags) (*pgxpool.Pool, error) {
	pool, err := f.pool(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, oneShotWithin)
	defer cancel()
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("reach PostgreSQL: %w", err)
	}
	if err := readmodel.CheckSchema(ctx, pool); err != nil {
		pool.Close()
		var schema *readmodel.SchemaError
		if errors.As(err, &schema) {
			return nil, refusal{schema.Error()}
		}
		return nil, err
	}
	return pool, nil
}

// actorFlags say who is at work.
type actorFlags struct {
	Actor string `placeholder:"NAME" help:"Who does this, for the audit trail; default user@host."`
}

// name is who is at work.
func (f *actorFlags) name() string {
	if f.Actor != "" {
		return storable(f.Actor)
	}
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return storable(name + "@" + host)
}

// storable is text that PostgreSQL takes.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

type accountShowCmd struct {
	ID string `arg:"" help:"The account."`
	balanceFlags
	databaseFlags
	outputFlags
}

// accountDocument is an account in JSON.
type accountDocument struct {
	AccountID         string           `json:"account_id"`
	Currency          *string          `json:"currency"`
	Balance           *json.Number     `json:"balance"`
	Version           *int64           `json:"version"`
	Status            *string          `json:"status"`
	Stale             bool             `json:"stale"`
	WaitingForVersion *int64           `json:"waiting_for_version"`
	LastEventID       *string          `json:"last_event_id"`
	LastEventAt       *string          `json:"last_event_at"`
	Parked            []parkedDocument `json:"parked"`
}

type parkedDocument struct {
	Version   int64  `json:"version"`
	Class     string `json:"class"`
	EventID   string `json:"event_id"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// Run shows an account.
func (c *accountShowCmd) Run(ctx context.Context, std *streams) error {
	if err := c.validate(); err != nil {
		return err
	}
	pool, err := openReadModel(ctx, &c.databaseFlags)
	if err != nil {
		return err
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(ctx, oneShotWithin)
	defer cancel()
	view, err := readmodel.ShowAccount(ctx, pool, storable(c.ID))
	if errors.Is(err, readmodel.ErrUnknownAccount) {
		return refusef("account %q is unknown: no event of it has been applied or parked", c.ID)
	}
	if err != nil {
		return err
	}
	if c.json() {
		return printJSON(std.out, describeAccount(&view))
	}
	return printAccount(std.out, &view)
}

func describeAccount(view *readmodel.AccountView) accountDocument {
	d := accountDocument{AccountID: view.ID, Parked: []parkedDocument{}}
	if b := view.Balance; b != nil {
		balance := json.Number(b.Balance) // with exactly the digits it has in the database
		d.Currency, d.Balance, d.Version, d.Status = orNull(b.Currency), &balance, &b.Version, &b.Status
		d.LastEventID, d.LastEventAt = orNull(b.LastEventID), timeOrNull(b.LastEventAt)
	}
	if view.Hold != nil {
		d.Stale, d.WaitingForVersion = true, &view.Hold.Expected
	}
	for _, p := range view.Parked {
		d.Parked = append(d.Parked, parkedDocument{p.Version, string(p.Class), p.EventID, p.Topic, p.Partition, p.Offset})
	}
	return d
}

func timeOrNull(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return new(timeText(*t))
}
