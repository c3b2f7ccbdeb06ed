// Package outbox runs the whole way from a bank's outbox to the read model, with
// the real Debezium on it, and checks what comes out:
//
//	bank's database ──▶ Debezium in Kafka Connect ──▶ Kafka ──▶ projector ──▶ read model
//
// It does so twice at once, in the two shapes in which Debezium's outbox router writes
// a payload (Pipelines). While the banks are at work, Connect is killed as kill -9 does,
// first before it has ever written down how far it is, then when it has published more
// than it has written down; started again, it publishes those events again. In the end
// every account of the read model must equal the bank's own books, in balance and
// version, `projector verify` must find the same, and no event may be dead-lettered.
//
// The package shares no code with the projector.
//
// `make demo-debezium` and a test in e2e run it.
package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// Options of a run. All are needed but Log, Say and Stay.
type Options struct {
	// Projector is the path of the program to run.
	Projector string
	// Accounts are opened in each bank at the start; some more while it is at work.
	Accounts int
	// Clients move money in each bank, at about Rate transactions a second.
	Clients, Rate int
	// Unwritten is how many events of each bank Connect must have published without
	// having written it down when it is killed.
	Unwritten int64
	// Log receives what the servers and the projectors log. Nil discards it.
	Log io.Writer
	// Say is called with each step. nil: it is not.
	Say func(what string)
	// Stay is called with the results and all addresses. The servers stay up until the
	// context ends. Nil: nothing stays.
	Stay func(*Report, []Place)
}

// Validate answers an error that names what is out of range.
func (o *Options) Validate() error {
	switch {
	case o.Projector == "":
		return errors.New("projector: the path of the program is needed")
	case o.Accounts < MinAccounts:
		return fmt.Errorf("accounts: must be at least %d", MinAccounts)
	case o.Clients < 1:
		return errors.New("clients: must be at least 1")
	case o.Rate < 1:
		return errors.New("rate: must be at least 1")
	case o.Unwritten < 1:
		return errors.New("unwritten: must be at least 1")
	}
	return nil
}

// Report is what a run has found, a result for each pipeline.
type Report struct {
	Results []Result
	Took    time.Duration
}

// Result is what has come out of one pipeline.
type Result struct {
	Pipeline    string
	Topic       string
	Accounts    int      // in the bank's books
	Events      int64    // in the outbox
	Records     int64    // in the topic
	DeadLetters int64    // in the DLQ topic
	Differences []string // between the books and the read model, an account each, without amounts
	Verified    int      // accounts that `projector verify` finds to match the books; 0 when there are differences
}

// Redelivered is how many events Debezium has published more than once.
func (r Result) Redelivered() int64 { return r.Records - r.Events }

// Check is why the result is not what it should be, nil when it is.
func (r Result) Check() error {
	var err error
	if r.Redelivered() <= 0 {
		err = fmt.Errorf("%s: nothing was redelivered: %d events, %d records", r.Topic, r.Events, r.Records)
	}
	if r.DeadLetters != 0 {
		err = errors.Join(err, fmt.Errorf("%s: %d dead letters, want none", r.Topic, r.DeadLetters))
	}
	if len(r.Differences) == 0 && r.Verified != r.Accounts {
		err = errors.Join(err, fmt.Errorf("%s: projector verify matches %d of %d accounts", r.Topic, r.Verified, r.Accounts))
	}
	if n := len(r.Differences); n > 0 {
		err = errors.Join(err, fmt.Errorf("%s: %d accounts differ from the bank's books, the first: %s", r.Topic, n, r.Differences[0]))
	}
	return err
}

// closeWithin bounds the end of everything.
const closeWithin = 30 * time.Second

// Play runs it all once. An error means that it did not come to an end; what came out
// is in the report, for Result.Check to compare.
func Play(ctx context.Context, options Options) (report *Report, err error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	s := &stage{options: options, began: time.Now()}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
		defer cancel()
		for _, end := range slices.Backward(s.closers) {
			err = errors.Join(err, end(ctx))
		}
	}()
	for _, step := range []func(context.Context) error{s.startServers, s.prepare, s.startConnect, s.consume, s.act} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if report, err = s.report(ctx); err == nil && options.Stay != nil {
		err = s.stay(ctx, report)
	}
	return report, err
}

// stage is one run.
type stage struct {
	options Options
	began   time.Time
	closers []func(context.Context) error
	servers
	pipelines []*pipeline
}

func (s *stage) say(format string, args ...any) {
	if s.options.Say != nil {
		s.options.Say(fmt.Sprintf(format, args...))
	}
}

// act has the banks work while Connect is killed twice, then waits until everything
// has arrived.
func (s *stage) act(ctx context.Context) error {
	working, goHome := context.WithCancel(ctx)
	defer goHome()
	ended := make(chan error, len(s.pipelines))
	for _, p := range s.pipelines {
		go func() { ended <- p.bank.Work(working, s.options.Clients, s.options.Rate) }()
	}
	s.say("the banks are at work: %d clients each, %d accounts", s.options.Clients, s.options.Accounts)
	err := s.killTwice(ctx)
	goHome()
	for range s.pipelines {
		err = errors.Join(err, <-ended)
	}
	if err != nil {
		return err
	}
	s.say("the banks have closed; waiting for the read models")
	return s.awaitArrival(ctx)
}

// killTwice kills Connect before it has ever written its offsets, and once more after.
func (s *stage) killTwice(ctx context.Context) error {
	for _, written := range []bool{false, true} {
		if err := s.killConnect(ctx, written); err != nil {
			return err
		}
		if err := s.connect.Start(ctx); err != nil {
			return fmt.Errorf("start Kafka Connect again: %w", err)
		}
		s.say("Connect is back")
	}
	return nil
}

// lookEvery is how often something is looked at that is waited for.
const lookEvery = 50 * time.Millisecond

// errTooSlow ends a wait for something that should have happened long ago.
var errTooSlow = errors.New("it takes too long")

// await calls look until it answers true, for so long.
func await(ctx context.Context, limit time.Duration, look func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTooSlow)
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		done, err := look(ctx)
		if done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
