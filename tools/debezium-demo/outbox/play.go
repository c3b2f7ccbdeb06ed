// Package outbox runs the complete pipeline from a bank's outbox to the read model, with the real
// Debezium, and checks the result:
//
//	bank's database ──▶ Debezium in Kafka Connect ──▶ Kafka ──▶ projector ──▶ read model
//
// It runs two pipelines at the same time, one for each format in which Debezium's outbox router
// writes a payload. While the banks work, Connect is killed with SIGKILL two times. The first time,
// it has not yet written its offsets. The second time, it has published more events than its
// written offsets cover. After each restart it publishes the uncovered events again. At the end,
// balance and version of every account in the read model must equal the bank's own books.
// `projector verify` must find no difference, and no event may be dead-lettered.
//
// Bank and comparison share no code with the projector.
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

// Options configures a run. All fields are required except Log, Say and Stay.
type Options struct {
	// Projector is the path of the projector's binary.
	Projector string
	// Accounts is how many accounts each bank opens at the start. It opens more during the work.
	Accounts int
	// Clients is how many clients move money in each bank. Rate is about how many transactions they
	// make together each second.
	Clients, Rate int
	// Unwritten is a minimum for each bank. Connect is killed only after it has published at least
	// this number of the bank's events since it last wrote its offsets.
	Unwritten int64
	// Log receives the logs of the servers and the projectors. Nil discards them.
	Log io.Writer
	// Say, if not nil, is called with a description of each step.
	Say func(what string)
	// Stay, if not nil, is called after the comparison with the results and all addresses. The
	// servers then run until the context ends. If Stay is nil, the servers are stopped at once.
	Stay func(*Report, []Place)
}

// Validate returns an error that names the field that is out of range.
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

// Report holds the result of each pipeline.
type Report struct {
	Results []Result
	Took    time.Duration
}

// Result is the result of one pipeline.
type Result struct {
	Pipeline    string
	Topic       string
	Accounts    int      // in the bank's books
	Events      int64    // in the outbox
	Records     int64    // in the topic
	DeadLetters int64    // in the DLQ topic
	Differences []string // between the books and the read model, one for each account, without amounts
	Verified    int      // accounts for which `projector verify` finds no difference to the books; 0 if there are differences
}

// Redelivered returns how many records Debezium has published in addition to one record for each
// event.
func (r Result) Redelivered() int64 { return r.Records - r.Events }

// Check returns an error if the result is wrong.
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

const closeWithin = 30 * time.Second

// Play makes one complete run. An error means that the run did not finish. The report holds the
// results, which Result.Check checks.
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

// act lets the banks work and kills Connect twice. It then waits until all events have arrived.
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

// killTwice kills Connect two times: before and after Connect has written its offsets for the first
// time.
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

// checkEvery is the interval between two checks of a condition.
const checkEvery = 50 * time.Millisecond

// errTooSlow ends a wait that exceeds its limit.
var errTooSlow = errors.New("it takes too long")

// await calls the function check until it returns true, but not longer than limit.
func await(ctx context.Context, limit time.Duration, check func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errTooSlow)
	defer cancel()
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		done, err := check(ctx)
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
