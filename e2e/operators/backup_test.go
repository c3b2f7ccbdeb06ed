package operators_test

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"projector/internal/devstack"
)

// backup is a copy of the database, with the state of the oracles at its time.
type backup struct {
	name    string
	restore []func()
}

// backUp copies the database.
func (s *stage) backUp() {
	s.t.Helper()
	s.scratch++
	s.saved = &backup{name: fmt.Sprint("backup_", s.scratch)}
	s.note("a backup is made")
	s.copyDatabase(s.database(), s.saved.name)
	fourEyes, factors, means := s.fourEyes, s.rules.factors, s.rules.means
	s.saved.restore = append(s.saved.restore, func() { s.fourEyes, s.rules.factors = fourEyes, factors })
	for _, r := range s.readers {
		next, high, group, flags, oracle := slices.Clone(r.next), slices.Clone(r.high), r.group, r.flags, r.oracle.snapshot()
		s.saved.restore = append(s.saved.restore, func() {
			r.next, r.high = slices.Clone(s.start), slices.Clone(s.start)
			if r.group == group { // else the backup has no positions of the new group
				copy(r.next, next) // nor of a partition that was added later
				copy(r.high, high)
			}
			oracle()
			accept := s.changes(r, means)
			if accept != nil || !slices.Equal(r.flags, flags) { // instances with the other text of the file, or with another mapping, write nothing
				r.flags = flags
				s.producer.produce(2)
				s.endSecond(r)
				s.restart(r, accept...)
			}
		})
	}
	s.count("backup", true)
}

// restore replaces the database by its backup while consumers run.
func (s *stage) restore() {
	s.t.Helper()
	if s.moved {
		return
	}
	if s.saved == nil || s.rnd.IntN(4) == 0 {
		s.backUp()
		return
	}
	s.note("the backup is restored")
	s.producer.produce(2)
	if err := devstack.DropDatabase(s.t.Context(), s.cluster.URL(), s.database()); err != nil {
		s.t.Fatal(err)
	}
	s.copyDatabase(s.saved.name, s.database())
	if s.operator != "" { // the grants on the database are not part of a backup
		s.exec(s.db, string(must(os.ReadFile("../../sql/roles.sql"))(s.t)))
	}
	for _, restore := range s.saved.restore {
		restore()
	}
	s.count("restore", true)
}

func (s *stage) database() string { return must(pgconn.ParseConfig(s.url))(s.t).Database }

// copyDatabase copies a database to which no session can connect meanwhile.
func (s *stage) copyDatabase(from, to string) {
	s.t.Helper()
	admin := must(pgx.Connect(s.t.Context(), s.cluster.URL()))(s.t)
	defer func() { _ = admin.Close(s.t.Context()) }()
	for _, sql := range []string{
		"ALTER DATABASE " + from + " ALLOW_CONNECTIONS false",
		"SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '" + from + "'",
		devstack.CreateStatement(to, from),
		"ALTER DATABASE " + from + " ALLOW_CONNECTIONS true",
		"ALTER DATABASE " + to + " ALLOW_CONNECTIONS true",
		"CHECKPOINT", // else a crash of PostgreSQL sets the sequences of the copy back
	} {
		if _, err := admin.Exec(s.t.Context(), sql); err != nil {
			s.t.Fatal(err)
		}
	}
	s.db.Reset()
}

// snapshot returns a function that restores the oracle's present state. The dead letters are not part
// of it, because they are in the DLQ topic.
func (o *ordered) snapshot() func() {
	accounts, discarded := copies(o.accounts), maps.Clone(o.discarded)
	return func() { o.accounts, o.discarded = copies(accounts), maps.Clone(discarded) }
}

func copies(accounts map[string]*account) map[string]*account {
	all := map[string]*account{}
	for id, a := range accounts {
		all[id] = a.copy()
	}
	return all
}

func (a *account) copy() *account {
	if a == nil {
		return nil
	}
	b := *a
	b.waiting, b.history, b.skipped, b.forced = map[int64]*parked{}, maps.Clone(a.history), maps.Clone(a.skipped), maps.Clone(a.forced)
	for v, p := range a.waiting {
		event := *p
		b.waiting[v] = &event
	}
	b.before = a.before.copy()
	return &b
}

// snapshot is as that of ordered.
func (u *unordered) snapshot() func() {
	applied, corrected, discarded := maps.Clone(u.applied), maps.Clone(u.corrected), maps.Clone(u.discarded)
	return func() {
		u.applied, u.corrected, u.discarded = maps.Clone(applied), maps.Clone(corrected), maps.Clone(discarded)
	}
}
