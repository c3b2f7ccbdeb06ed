package readmodel

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"projector/internal/session"
)

// OrderedShadow is an ordered projection of one's own, rebuilt beside the live one: the rows
// that its SQL writes, how far its accounts are, and what waits there.
type OrderedShadow struct {
	*RowShadow
	kind OrderedDefinition
}

// OpenOrderedShadow is OpenRowShadow for such a projection.
func OpenOrderedShadow(ctx context.Context, live *pgxpool.Pool, kind OrderedDefinition) (*OrderedShadow, error) {
	rows := AppendDefinition{Label: kind.Label, RebuildTables: kind.RebuildTables, Own: true, Rebuildable: kind.Rebuildable}
	s, err := openRowShadow(ctx, live, rows, &accountState{
		account: stateTable(kind.Label, "projection_account", []string{"account_id"}, "version", "last_event_id"),
		parked:  stateTable(kind.Label, "projection_parked_event", []string{"account_id", "version"}, "event_id"),
		beyond:  stateTable(kind.Label, "projection_park_overflow", []string{"account_id"}),
	})
	if err != nil {
		return nil, err
	}
	return &OrderedShadow{s, kind}, nil
}

// Open makes the projection of one partition of the topic that is read again.
func (s *OrderedShadow) Open(cfg RunConfig, topic string, partition int32) session.Projection {
	cfg.Pool = s.Pool
	return s.kind.Open(cfg)(Partition{Group: "rebuild", Topic: topic, Number: partition})
}

// PassOver is that of Shadow.
func (s *OrderedShadow) PassOver(ctx context.Context, cfg RepairConfig, e *AuditedEvent, seen bool) (passed bool, err error) {
	cfg.projection, cfg.take = s.kind.Label, s.kind.Take
	return s.passOver(ctx, cfg, e, seen)
}

// stateTable is a table of all ordered projections, as one of them sees it.
func stateTable(label, name string, key []string, rest ...string) *rowTable {
	var columns []rowColumn
	for i, column := range append(slices.Clone(key), rest...) {
		columns = append(columns, rowColumn{quoted: column, name: column, key: i < len(key)})
	}
	return newRowTable(RebuildTable{Name: name}, "(SELECT * FROM "+name+" WHERE projection = "+literal(label)+")", "", columns)
}

// accountState is how far the accounts of an ordered projection are, and what waits: it
// belongs to the rows, and changes only together with them.
type accountState struct {
	account, parked, beyond *rowTable
	stood                   string                 // the live tables, added up, when they were compared
	differs                 map[string]bool        // accounts, and whether the topic has an event of them
	rows                    map[string]RebuildKind // accounts of which rows differ
	foreign                 bool                   // rows that are of no account are unknown
	plan                    string                 // what would be written, as a hash
}

func (s *accountState) tables() []*rowTable { return []*rowTable{s.account, s.parked, s.beyond} }

// note takes in that a row of the SQL's own differs.
func (s *accountState) note(t *rowTable, kind RebuildKind, key string) error {
	if s == nil {
		return nil
	}
	if !t.ofAccounts {
		s.foreign = s.foreign || kind == RebuildUnknown
		return nil
	}
	id, err := accountIn(key)
	if s.rows[id] != RebuildUnknown {
		s.rows[id] = kind
	}
	return err
}

func accountIn(key string) (string, error) {
	var k struct {
		ID string `json:"account_id"`
	}
	if err := json.Unmarshal([]byte(key), &k); err != nil {
		return "", fmt.Errorf("read a key: %w", err)
	}
	return k.ID, nil
}

// compareState finds the accounts that are not where they were rebuilt to be, or wait for
// something else.
func (c *rowComparison) compareState(ctx context.Context, live, rebuilt pgx.Tx) error {
	s := c.shadow.state
	if s == nil {
		return nil
	}
	checked, matched := c.report.Checked, c.report.Matched
	for _, t := range []*rowTable{s.account, s.parked} {
		err := c.compare(ctx, live, rebuilt, t, func(a, b *row) error {
			one := a
			if one == nil {
				one = b
			}
			id, err := accountIn(one.key)
			s.differs[id] = s.differs[id] || b != nil
			becomes := "gone"
			if b != nil {
				becomes = strconv.FormatInt(b.digest, 10)
			}
			s.plan = fmt.Sprintf("%x", sha256.Sum256([]byte(s.plan+t.Name+one.key+becomes)))
			return err
		})
		if err != nil {
			return err
		}
	}
	c.report.Checked, c.report.Matched = checked, matched
	for _, id := range slices.Sorted(maps.Keys(s.differs)) {
		c.takeAccount(id)
	}
	if c.unsure {
		clear(s.differs)
	}
	var err error
	s.stood, err = s.sum(ctx, live)
	return err
}

// takeAccount counts an account of which no row has been counted.
func (c *rowComparison) takeAccount(id string) {
	s := c.shadow.state
	if s.rows[id] != "" {
		return
	}
	kind := RebuildHold
	switch {
	case c.unsure:
		kind = RebuildCorrected
	case !s.differs[id]:
		kind = RebuildUnknown
	}
	c.report.Kinds[kind]++
	if len(c.report.Differences) < c.opts.List {
		c.report.Differences = append(c.report.Differences, RebuildDifference{ID: id, Kind: kind})
	}
}

// sum adds up the tables.
func (s *accountState) sum(ctx context.Context, db querier) (all string, err error) {
	for _, t := range s.tables() {
		var one string
		if err := db.QueryRow(ctx, t.statement("state_sum")).Scan(&one); err != nil {
			return "", err
		}
		all += one + " "
	}
	return all, nil
}

// counted is how many accounts would be changed of which no row is.
func (s *accountState) counted(removing bool) (n int64) {
	if s == nil {
		return 0
	}
	for id, known := range s.differs {
		if s.rows[id] == "" && (known || removing) {
			n++
		}
	}
	return n
}

// lockState makes sure that all is as it was when it was compared, and stays so.
func (w *rowSwap) lockState(ctx context.Context, t *swapTx, positions []TopicPosition) error {
	s := w.shadow.state
	if s == nil || len(s.differs) == 0 {
		return nil
	}
	if !slices.Equal(positions, w.shadow.positions) {
		return MovedOnError{}
	}
	if !w.opts.Remove && w.half() {
		return RowsStayError{}
	}
	if _, err := t.exec(ctx, "state_lock"); err != nil {
		return err
	}
	if err := t.limited(ctx); err != nil {
		return err
	}
	stands, err := s.sum(ctx, t.tx)
	if err == nil && stands != s.stood {
		err = MovedOnError{}
	}
	return err
}

// half reports whether accounts would begin again and keep rows of what they were.
func (w *rowSwap) half() bool {
	s := w.shadow.state
	if s.foreign {
		return true
	}
	for id, known := range s.differs {
		if known && s.rows[id] == RebuildUnknown {
			return true
		}
	}
	return false
}

// replaceState puts the accounts that differ where they were rebuilt to be, behind their rows.
func (w *rowSwap) replaceState(ctx context.Context, t *swapTx) error {
	s, label := w.shadow.state, w.shadow.kind.Label
	if s == nil {
		return nil
	}
	var all, alone, results []string
	for id, known := range s.differs {
		if !known && !w.opts.Remove {
			continue
		}
		if all = append(all, id); s.rows[id] != "" {
			continue
		}
		alone = append(alone, id)
		if known {
			w.done.Replaced++
			results = append(results, "replaced")
		} else {
			w.done.Removed++
			results = append(results, "removed")
		}
	}
	switch {
	case len(all) == 0:
		return nil
	case w.done.Left > 0:
		return MovedOnError{}
	}
	for _, table := range s.tables() {
		for _, step := range []string{"state_delete", "state_insert"} {
			if _, err := t.execText(ctx, table.statement(step), label, all); err != nil {
				return err
			}
		}
	}
	if len(alone) == 0 {
		return nil
	}
	_, err := t.exec(ctx, "state_audit", w.opts.Actor, label, alone, results, w.opts.Reason)
	return err
}

// MovedOnError says that accounts which are to be put back or on have been written since they
// were compared.
type MovedOnError struct{}

// Error implements error and names the remedy.
func (MovedOnError) Error() string {
	return "some accounts are not at the version that the topic gives, and events were taken in while they were compared, so nothing was changed: " +
		"stop the consumers (`projector pause --all --reason=rebuild --yes`, with the same projection file), run this again, and resume"
}

// SafeText vouches for the text: it holds no data.
func (e MovedOnError) SafeText() string { return e.Error() }

// RowsStayError says that accounts would begin again on top of what they had.
type RowsStayError struct{}

// Error implements error and names the remedy.
func (RowsStayError) Error() string {
	return "some accounts go back to a version that the topic gives, and rows that came from their later events would stay, so nothing was changed: " +
		"with --remove those rows go, too"
}

// SafeText vouches for the text: it holds no data.
func (e RowsStayError) SafeText() string { return e.Error() }
