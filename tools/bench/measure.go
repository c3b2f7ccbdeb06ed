package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"projector/internal/devstack"
	"projector/internal/pace"
)

// prepared is a workload with everything that its runs need.
type prepared struct {
	*loaded
	kfake *loaded
	fake  *devstack.Fake
	// full is a template database that holds the first versions of all accounts. A large workload
	// runs in this database itself, and not in a copy. projected is a template database that holds
	// the result of the whole topic.
	full, projected database
	shared          bool // the topic belongs to another workload
}

// sharing finds a prepared workload that has the same stream as w. It returns w with the topic of
// the prepared workload, or nil if none has this stream.
func sharing(all []*prepared, w workload) *prepared {
	for _, p := range all {
		if w.stream != "" && p.stream == w.stream {
			l := *p.loaded
			l.workload = w
			return &prepared{loaded: &l, shared: true}
		}
	}
	return nil
}

func (b *bench) measureGroup(ctx context.Context, group []workload) ([]Run, error) {
	var all []*prepared
	for _, w := range group {
		p := sharing(all, w)
		if p == nil {
			var err error
			if p, err = b.prepare(ctx, w); err != nil {
				return nil, err
			}
		}
		all = append(all, p)
	}
	var runs []Run
	rounds := b.Rounds
	if group[0].large {
		rounds = 1
	}
	for round := range rounds {
		for _, p := range all {
			subjects := b.subjectsOf(p)
			if round%2 == 1 { // reverses the order every other round, because the first run uses cold servers
				slices.Reverse(subjects)
			}
			for _, s := range subjects {
				run, err := b.measureOnce(ctx, p, s)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", s, err)
				}
				run.Workload, run.Subject, run.Round = p.name, s, round+1
				run.When, run.Scale, run.Commit = time.Now().UTC().Truncate(time.Second), b.Scale, b.commit
				b.progress(&run)
				runs = append(runs, run)
			}
		}
	}
	return runs, b.tidy(ctx, all)
}

func (b *bench) subjectsOf(p *prepared) []subject {
	all := slices.Clone(p.subjects)
	if b.Beside != "" && p.own() != "" {
		all = append(all, subjectOther)
	}
	return slices.DeleteFunc(all, func(s subject) bool {
		return len(b.Subjects) > 0 && !slices.Contains(b.Subjects, string(s))
	})
}

// prepare loads the topic and creates the template databases.
func (b *bench) prepare(ctx context.Context, w workload) (p *prepared, err error) {
	p = &prepared{}
	b.say("%s: %s", w.name, w.about)
	if w.held > 0 {
		b.say("%s: inserting %d rows", w.name, w.accounts*int(w.held))
		if p.full, err = b.fullDatabase(ctx, &w); err != nil {
			return nil, err
		}
	}
	if own := w.own(); own == subjectSteady || own == subjectStart { // steady and start produce their events during the run
		p.loaded = &loaded{workload: w, broker: b.broker()}
		return p, nil
	}
	b.say("%s: loading %d events of %d accounts", w.name, w.events, w.accounts)
	if p.loaded, err = load(ctx, w, b.broker()); err == nil {
		err = warm(ctx, p.loaded)
	}
	if err == nil && w.again {
		p.projected, err = b.redeliver(ctx, p.loaded)
	}
	if err == nil && slices.Contains(w.subjects, subjectKfake) {
		p.fake, err = devstack.StartFake(ctx, devstack.FakeOptions{})
		if err == nil {
			p.kfake, err = load(ctx, w, broker{addrs: p.fake.Addrs()})
		}
	}
	return p, err
}

// redeliver projects the topic once and returns the database with the result. Every event of the
// measured run is then a duplicate.
func (b *bench) redeliver(ctx context.Context, l *loaded) (database, error) {
	d, err := b.newDatabase(ctx, "")
	if err != nil {
		return d, err
	}
	first, err := b.catchUp(ctx, l, d, b.nextGroup(), b.meter(l.broker))
	if err == nil && first.Problem != "" {
		err = errors.New(first.Problem)
	}
	return d, err
}

func (b *bench) meter(on broker) *meter { return &meter{postgres: b.postgres.PID(), broker: on.pid} }

func (b *bench) nextGroup() string {
	b.groups++
	return "bench-" + strconv.Itoa(b.groups)
}

// measureOnce measures a subject one time. The database is new, unless the workload is large or
// reads its topic again.
func (b *bench) measureOnce(ctx context.Context, p *prepared, s subject) (Run, error) {
	l := p.loaded
	if s == subjectKfake {
		l = p.kfake
	}
	m := b.meter(l.broker)
	if s == subjectOther {
		ours := b.projector
		defer func() { b.projector = ours }()
		b.projector, s = b.Beside, l.own()
	}
	if s == subjectDecode {
		awaitQuiet(ctx, b.Quiet)
		return b.limit(ctx, m, "decode", "--brokers="+strings.Join(l.broker.addrs, ","), "--topic="+l.topic(),
			"--partitions="+strconv.Itoa(int(l.partitions)), "--events="+strconv.Itoa(l.events))
	}
	if l.again {
		awaitQuiet(ctx, b.Quiet)
		return b.catchUp(ctx, l, p.projected, b.nextGroup(), m)
	}
	d, err := p.full, error(nil)
	if !l.large || d.name == "" {
		d, err = b.newDatabase(ctx, d.name)
	}
	if err != nil {
		return Run{}, err
	}
	of := l.table()
	if err := of.create(ctx, d); err != nil {
		return Run{}, err
	}
	awaitQuiet(ctx, b.Quiet)
	var run Run
	switch s {
	case subjectRaw:
		run, err = b.raw(ctx, l, d, m)
	case subjectSteady:
		run, err = b.steadyOnce(ctx, l, d, m, 0)
	case subjectStart:
		run, err = b.inFreshTopic(ctx, l, func(fresh *loaded) (Run, error) { return b.start(ctx, fresh, d, b.nextGroup(), m) })
	case subjectReaders:
		run, err = b.steadyOnce(ctx, l, d, m, waitingReaders)
	default:
		run, err = b.catchUp(ctx, l, d, b.nextGroup(), m)
	}
	return run, errors.Join(err, b.drop(ctx, d))
}

// raw runs the raw limit and checks that it wrote the same rows as the projector would.
func (b *bench) raw(ctx context.Context, l *loaded, d database, m *meter) (Run, error) {
	run, err := b.limit(ctx, m, "raw", "--workload="+l.name,
		"--scale="+strconv.FormatFloat(b.Scale, 'g', -1, 64), "--database="+d.url)
	if err != nil {
		return run, err
	}
	w, err := watch(ctx, d, "", l.table())
	if err != nil {
		return run, err
	}
	defer w.close()
	run.RowsWritten = int64(run.Events)
	run.Problem, err = w.check(ctx, l.fingerprint)
	return run, err
}

func (b *bench) steadyOnce(ctx context.Context, l *loaded, d database, m *meter, readers int) (Run, error) {
	return b.inFreshTopic(ctx, l, func(fresh *loaded) (Run, error) { return b.steady(ctx, fresh, d, b.nextGroup(), m, readers) })
}

// inFreshTopic runs measure with a new topic, because the run produces to the topic.
func (b *bench) inFreshTopic(ctx context.Context, l *loaded, measure func(*loaded) (Run, error)) (Run, error) {
	b.groups++
	w := l.workload
	w.turn = b.groups
	fresh, err := emptyTopic(ctx, w, l.broker)
	if err != nil {
		return Run{}, err
	}
	run, err := measure(fresh)
	return run, errors.Join(err, b.removeTopic(ctx, w.topic()))
}

// tidy frees disk and memory for the next group.
func (b *bench) tidy(ctx context.Context, all []*prepared) error {
	var err error
	for _, p := range all {
		if p.fake != nil {
			err = errors.Join(err, p.fake.Close(ctx))
		}
		for _, d := range []database{p.full, p.projected} {
			if d.name != "" {
				err = errors.Join(err, b.drop(ctx, d))
			}
		}
		if p.loaded != nil && p.fingerprint != "" && !p.shared {
			err = errors.Join(err, b.removeTopic(ctx, p.topic()))
		}
	}
	return err
}

// cpuUse is the CPU time during a run, in seconds. Each field is one user of CPU time.
type cpuUse struct {
	Subject  float64
	Postgres float64 // without the session of the watcher
	Broker   float64 // the real broker, or this process if the broker is in it
	Other    float64 // processes that are not part of the measurement and disturb the run
	Steal    float64 // time that the hypervisor gave to other virtual machines
}

// meter reads CPU times at the start and the end of a run.
type meter struct {
	subjects []int // process ids; empty before the start
	postgres int   // process id of the postmaster
	watcher  int   // process id of the watcher's session, or 0 if there is none
	broker   int   // process id, or 0 if the broker is in this process

	began  time.Time
	before cpuUse
	busy   float64
	own    float64
}

func (m *meter) begin() {
	m.began, m.before, m.busy, m.own = time.Now(), m.read(), machineBusy(), processCPU(os.Getpid())
	_, m.before.Steal = machineCPU()
}

// end returns the CPU time since the start of the run, and whether the run was disturbed.
func (m *meter) end() (use cpuUse, disturbed bool) {
	wall := time.Since(m.began).Seconds()
	now := m.read()
	_, steal := machineCPU()
	use = cpuUse{
		Subject:  now.Subject - m.before.Subject,
		Postgres: now.Postgres - m.before.Postgres,
		Broker:   now.Broker - m.before.Broker,
		Steal:    steal - m.before.Steal,
	}
	own := processCPU(os.Getpid()) - m.own
	taken := use.Subject + use.Postgres + own
	if m.broker != 0 {
		taken += use.Broker
	}
	watching := now.Other - m.before.Other
	use.Other = max(0, machineBusy()-m.busy-taken-watching)
	return use, use.Other+use.Steal > disturbedFrom(wall)
}

// disturbedFrom returns a limit in seconds of CPU time: 4 % of all processors during the run, plus
// half a second. A run is disturbed if other processes and the hypervisor together used more than
// this limit. The summary of the peers uses the same limit.
func disturbedFrom(wall float64) float64 { return 0.04*float64(runtime.NumCPU())*wall + 0.5 }

// read returns the CPU times since the start of each process. In this result, the field Other holds
// the CPU time of the watcher's session.
func (m *meter) read() cpuUse {
	var u cpuUse
	for _, pid := range m.subjects {
		u.Subject += processCPU(pid)
	}
	if m.watcher != 0 {
		u.Other = processCPU(m.watcher)
	}
	u.Postgres = treeCPU(m.postgres) - u.Other
	if m.broker != 0 {
		u.Broker = processCPU(m.broker)
	} else {
		u.Broker = processCPU(os.Getpid())
	}
	return u
}

func machineBusy() float64 {
	busy, _ := machineCPU()
	return busy
}

// awaitQuiet waits until the machine has been almost idle for a second, but not longer than limit.
func awaitQuiet(ctx context.Context, limit time.Duration) {
	for end := time.Now().Add(limit); time.Now().Before(end); {
		before := machineBusy()
		if pace.Sleep(ctx, time.Second) != nil || machineBusy()-before < 0.1 {
			return
		}
	}
}
