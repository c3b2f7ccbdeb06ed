package rebuild

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"projector/errclass"
	"projector/internal/failpoint"
	"projector/projection/file"
	"projector/readmodel"
)

// SwapOptions are the options of a swap.
type SwapOptions struct {
	Topic  string
	Actor  string
	Reason string        // may be empty
	Remove bool          // also remove rows without an event in the topic
	Most   *int64        // the most accounts or rows that may change; nil means no limit
	Within time.Duration // time limit for the locks; 0 means 30 s
	// File is the new text of a custom projection's file. It is nil if the text is unchanged or the
	// projection has no file.
	File *file.Projection
	// Mapping is the mapping that the rebuild used. It is nil if the mapping is not to be stored.
	Mapping readmodel.Mapping
}

// Swapped counts the accounts or rows that were changed. Left counts the accounts or rows that were
// not changed, because operators have changed them since the rebuild began.
type Swapped struct {
	Replaced, Removed, Left int64
	Markers                 int64 // markers added to the inbox
}

// errNotCompared is returned by Swap if Compare was not called before.
var errNotCompared = errors.New("swap: the tables were not compared")

// Swap replaces the rows that differ, in one transaction. It locks the positions, so consumers of
// the projection wait until the swap ends. The function catchUp then brings the shadow tables
// exactly to these positions. Swap compares again the rows that differed and the rows written since
// the comparison. It replaces the rows that still differ. The server ends the transaction at the
// time limit.
func (s *Shadow) Swap(ctx context.Context, opts SwapOptions, catchUp CatchUp) (Swapped, error) {
	if s.found == nil {
		return Swapped{}, errNotCompared
	}
	if s.found.refused != nil {
		return Swapped{}, s.found.refused
	}
	opts.Within = cmp.Or(opts.Within, swapWithin)
	// Records that arrived during the comparison are read before locking, to keep the locks short.
	positions, err := LoadTopicPositions(ctx, s.live, s.kind.Name(), opts.Topic)
	if err == nil {
		err = catchUp(ctx, positions)
	}
	if err != nil {
		return Swapped{}, fmt.Errorf("swap: %w", err)
	}
	w := &swap{shadow: s, opts: opts, catchUp: catchUp}
	var before func(context.Context, *readmodel.Tx) error
	if s.found.report.Markers > 0 {
		before = w.restoreMarkers
	}
	if err := boundedSwap(ctx, s.live, opts.Within, before, w.run); err != nil {
		return Swapped{}, fmt.Errorf("swap: %w", err)
	}
	failpoint.Here(failpoint.RebuildSwapped)
	s.moved = w.moved
	return w.done, nil
}

// swap is the state of one call of Swap. Each attempt is one transaction.
type swap struct {
	shadow  *Shadow
	opts    SwapOptions
	catchUp CatchUp
	// The following fields are results of the last attempt.
	done   Swapped
	marked int64                          // markers added to the inbox after the positions were locked
	old    *readmodel.MappingChangedError // the mapping that was replaced; nil if none was
	moved  map[string]Kind                // new kinds of listed differences that are not changed, by ID
}

// TooManyError means that more accounts or rows would change than --max-differences allows.
type TooManyError struct{ Would, Most int64 }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("%d would change and %d may: nothing was changed", e.Would, e.Most)
}

// SafeText implements errclass.Describer: the text contains no data.
func (e *TooManyError) SafeText() string { return e.Error() }

// These are the reasons for which a swap is refused. Nothing was changed.
const (
	ErrRepairedSince errclass.Text = "people have replayed, skipped or discarded events of this projection since the rebuild began, " +
		"which the rebuilt rows do not have: nothing was changed; run it again"
	ErrOldMappingRuns errclass.Text = "consumers have gone on with the old --mapping or --first-version while the rows were compared, so nothing was changed"
	ErrOldTextRuns    errclass.Text = "consumers have gone on by the old text of the file while the rows were compared, so nothing was changed"
	// ErrRowsStay means that accounts may get a lower version, and that rows from their later
	// events may then stay.
	ErrRowsStay errclass.Text = "some accounts go back to a version that the topic gives, and rows that came from their later events would stay, " +
		"so nothing was changed: with --remove those rows go, too"
	// ErrUnclearMarkers means that rows would be replaced and others left alone, and that the inbox
	// lacks events. An event of a replaced row needs its marker, or else it could be counted again. An
	// event of a row that is left alone must not get one, or else it could never be counted.
	ErrUnclearMarkers errclass.Text = "some rows would be replaced and others left alone, and the inbox lacks events. It is not known which of the rows " +
		"these events belong to, so nothing was changed: replay the dead letters of this projection (`projector dlq replay`), and run it again. " +
		"If `inbox prune` has removed markers, no rebuild can tell, and people have to correct these rows"
	// ErrUnclearSums means that a swap would change accounts, but not the rows that may lack the
	// events of these accounts, or the reverse.
	ErrUnclearSums errclass.Text = "some accounts would get another version and rows that belong to no account would be left alone, or the reverse. " +
		"Such a row could lack an event for ever or have it twice, so nothing was changed: replay the dead letters of this projection (`projector dlq replay`), and run it again"
)

// stillRunning returns the error for consumers that have projected records in the old way since the
// rows were compared. The parameter why is ErrOldMappingRuns or ErrOldTextRuns.
func stillRunning(ctx context.Context, why errclass.Text) error {
	reader := readmodel.ReaderFlags(ctx)
	with, same := "flags", ""
	if why == ErrOldTextRuns {
		with = "text"
		if reader == "" {
			same = ", with the same projection file"
		}
	}
	return errclass.WithCause(fmt.Sprintf("%s: stop them (`projector pause --all%s --reason=rebuild --yes`%s), run this again, start them with the new %s, and resume",
		why, reader, same, with), why)
}

// restoreMarkers adds the markers that the inbox lacks. It runs before the positions are locked,
// because there may be very many markers. A consumer that inserts one of these markers waits until
// the swap ends. But this consumer has already locked its position, for which the swap will wait.
// PostgreSQL then ends one of the two transactions as a deadlock (40P01), and its owner repeats it.
func (w *swap) restoreMarkers(ctx context.Context, tx *readmodel.Tx) error {
	if err := tx.Send(ctx); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, w.shadow.inbox.fill.Query("inbox_restore"), w.shadow.kind.Name())
	w.done.Markers = tag.RowsAffected()
	return err
}

// run does all work of the swap that needs locks.
func (w *swap) run(ctx context.Context, t *swapTx) error {
	w.done, w.old = Swapped{Markers: w.done.Markers}, nil
	if err := w.reach(ctx, t); err != nil {
		return err
	}
	found, err := w.compareAgain(ctx, t)
	if err != nil {
		return err
	}
	if err := w.allowed(ctx, t, found); err != nil {
		return err
	}
	t.next(failpoint.RebuildChecked, "replacing rows")
	if err := w.replaceRows(ctx, t); err != nil {
		return err
	}
	if w.shadow.accounts != nil {
		if err := w.replaceAccounts(ctx, t, found); err != nil {
			return err
		}
	}
	other := w.old != nil || w.opts.File != nil
	if w.done.Replaced+w.done.Removed+w.done.Markers == 0 && !other {
		return errNothingFits
	}
	if w.done.Markers > 0 {
		reason := fmt.Sprintf("%s: %d markers were missing in the inbox", w.shadow.kind.Name(), w.done.Markers)
		if err := t.record(ctx, []readmodel.Action{w.action("", nil, reason, "replaced")}); err != nil {
			return err
		}
	}
	if w.done.Replaced+w.done.Removed == 0 && other {
		reason := w.shadow.kind.Name() + ": the mapping or the projection file was replaced, and no row differs"
		if err := t.record(ctx, []readmodel.Action{w.action("", nil, reason, "replaced")}); err != nil {
			return err
		}
	}
	t.next(failpoint.RebuildReplaced, "committing")
	return t.limited(ctx) // sets the time limits for the COMMIT
}

// reach locks the positions and brings the shadow tables exactly to them.
func (w *swap) reach(ctx context.Context, t *swapTx) error {
	t.next(failpoint.RebuildCompared, "locking the positions")
	positions, err := t.fence(ctx, w.shadow.kind.Name(), w.opts.Topic)
	if err != nil {
		return err
	}
	if err := w.storeFile(ctx, t, positions); err != nil {
		return err
	}
	if err := w.storeMapping(ctx, t, positions); err != nil {
		return err
	}
	t.next(failpoint.RebuildLocked, "reading the last records")
	if err := t.wait(ctx); err != nil {
		return err
	}
	if err := w.catchUp(ctx, positions); err != nil {
		return err
	}
	if err := t.limited(ctx); err != nil {
		return err
	}
	return reached(ctx, t.tx, w.opts.Topic, positions)
}

// storeFile stores the new text of the projection's file. Until the commit, consumers use the old
// text.
func (w *swap) storeFile(ctx context.Context, t *swapTx, positions []TopicPosition) error {
	if w.opts.File == nil {
		return nil
	}
	if !slices.Equal(positions, w.shadow.positions) {
		return stillRunning(ctx, ErrOldTextRuns)
	}
	if err := readmodel.KeepFile(ctx, t.tx, w.opts.File, true); err != nil {
		return err
	}
	return t.limited(ctx)
}

// storeMapping stores the new mapping. Until the commit, consumers use the old mapping.
func (w *swap) storeMapping(ctx context.Context, t *swapTx, positions []TopicPosition) error {
	if w.opts.Mapping == nil {
		return nil
	}
	name := w.shadow.kind.Name()
	err := readmodel.CheckMapping(ctx, t.tx, name, w.opts.Mapping)
	switch {
	case errors.As(err, &w.old) && !slices.Equal(positions, w.shadow.positions):
		return stillRunning(ctx, ErrOldMappingRuns)
	case err != nil && w.old == nil:
		return err
	}
	if err := readmodel.KeepMapping(ctx, t.tx, name, w.opts.Mapping, true); err != nil {
		return err
	}
	return t.limited(ctx)
}

// allowed returns an error if the swap must not make its changes, for example because there are
// more than --max-differences allows. It counts the accounts or rows that are not changed, because
// operators have changed them.
func (w *swap) allowed(ctx context.Context, t *swapTx, c *comparison) error {
	if err := t.limited(ctx); err != nil {
		return err
	}
	would, err := c.count(ctx, t.tx, w.opts.Remove)
	if err != nil {
		return err
	}
	w.done.Left = c.report.Kinds[Moved]
	w.moved = map[string]Kind{}
	for i := range w.shadow.found.report.Differences {
		d := &w.shadow.found.report.Differences[i]
		if kind := c.leftAs(d.account); kind != "" && d.Kind.changes() {
			w.moved[d.ID] = kind
		}
	}
	marked := w.done.Markers+w.marked > 0
	switch {
	case would > 0 && len(c.repaired) > 0 && !w.shadow.OfAccounts(), (w.opts.File != nil || w.old != nil || marked) && w.done.Left > 0:
		return ErrRepairedSince
	case w.opts.Most != nil && would > *w.opts.Most:
		return &TooManyError{Would: would, Most: *w.opts.Most}
	case !w.opts.Remove && c.keepsRows():
		return ErrRowsStay
	}
	return cmp.Or(c.mixed(&w.opts, w.old), c.unclear(marked, w.opts.Remove))
}

// mixed returns an error if rows by the old mapping or by the old text of the file would stay. The
// parameter old is nil if the mapping is not replaced.
func (c *comparison) mixed(opts *SwapOptions, old *readmodel.MappingChangedError) error {
	const (
		leftAlone = "would be left alone, because they have corrected events in them (`dlq replay --from-file`), are ahead of the topic or were repaired just now"
		unchanged = "; nothing was changed"
		goOn      = "or continue with the new one with `run --accept-changed-mapping`"
	)
	name, unknown := c.shadow.kind.Name(), c.report.Kinds[Unknown]
	// The second comparison of a swap does not have all that the first one leaves alone.
	left := max(c.report.LeftAlone(), c.shadow.found.report.LeftAlone())
	text := ""
	switch {
	case old != nil && c.opts.Partial:
		text = "--partial makes only some of them again: use the old one, " + goOn
	case old != nil && unknown > 0 && !opts.Remove:
		text = fmt.Sprintf("the topic has no event of %d of them, which would stay: remove them with --remove, or use the old one", unknown)
	case old != nil && left > 0:
		text = fmt.Sprintf("%d of them "+leftAlone+": use the old one, "+goOn, left)
	case opts.File != nil && left > 0:
		return errclass.Text(fmt.Sprintf("%d of the rows of %s "+leftAlone+": by another text they cannot be rebuilt"+unchanged, left, name))
	default:
		return nil
	}
	return errclass.Text(fmt.Sprintf("the rows of %s were made with %s, and %s"+unchanged, name, old.Stored, text))
}

// unclear returns an error if some events could be lost or counted twice, because a swap changes some
// rows and leaves others alone. The parameter marked is true if the swap adds markers.
func (c *comparison) unclear(marked, removing bool) error {
	if marked && c.left {
		return ErrUnclearMarkers
	}
	for _, d := range c.accounts {
		if d.state && (c.sumsLeft && d.kind.swapped(removing) || c.sums && !d.kind.changes()) {
			return ErrUnclearSums
		}
	}
	return nil
}

// Refused returns an error if a swap would be refused, for example because some rows would be left
// alone. The parameter old is nil if the swap does not replace the mapping.
func (s *Shadow) Refused(opts SwapOptions, old *readmodel.MappingChangedError) error {
	return cmp.Or(s.found.refused, s.found.unclear(s.found.report.Markers > 0, opts.Remove), s.found.mixed(&opts, old))
}

// leftAs returns the kind of an account's difference if the account is not changed now, although
// the comparison planned to change it. The result is empty if the account is changed.
func (c *comparison) leftAs(id string) Kind {
	if c.repaired[id] {
		return Moved
	}
	if d := c.accounts[id]; d != nil && d.kind != "" && !d.kind.changes() {
		return d.kind
	}
	return ""
}

// keepsRows reports whether accounts would be changed although rows that may come from their later
// events would stay.
func (c *comparison) keepsRows() bool {
	some := false
	for _, d := range c.accounts {
		if !d.kind.swapped(false) {
			continue
		}
		some = true
		if d.rows == Unknown {
			return true
		}
	}
	return some && c.foreign
}
