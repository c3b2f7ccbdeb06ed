//go:build faults

package faulttest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"projector/e2e/wait"
	"projector/internal/devstack"
	"projector/internal/testbank"
)

// outages returns the faults of PostgreSQL and of the connection to PostgreSQL.
func outages() []fault {
	return []fault{
		{name: "reply to COMMIT lost", quick: true, strike: repliesLost},
		{name: "PostgreSQL stopped immediately, restarted", quick: true, strike: postgresCrashes, setting: setting{during: 30 * time.Second}},
		{name: "all backends frozen", strike: backendsFrozen},
		{name: "read-only for a while", strike: readOnly},
		{name: "row lock held while a member joins", strike: rowLocked, setting: setting{replicas: 1}},
		{name: "slow by latency and bandwidth", strike: slowLine},
		{name: "100 rows a second", quick: true, strike: databaseCrawls, setting: setting{during: time.Minute}},
		{name: "role loses UPDATE", strike: grantLost},
		diskFull(),
		{name: "standby promoted that lacks the last commits", quick: true, strike: standbyPromoted},
		{name: "restored from an older backup", strike: backupRestored},
	}
}

// repliesLost closes connections after a COMMIT was executed but before its reply arrives.
func repliesLost(s *scene) int {
	rnd := rand.New(rand.NewPCG(s.seed, 4))
	s.proxy.LoseReplies(func() bool { return rnd.IntN(4) == 0 })
	s.awaitUnderLoad("lost replies", func() string {
		if n := s.proxy.Lost(); n < scaled(40, 10) {
			return fmt.Sprintf("%d so far", n)
		}
		return ""
	})
	s.proxy.LoseReplies(nil)
	return s.proxy.Lost()
}

// postgresCrashes crashes PostgreSQL several times.
func postgresCrashes(s *scene) (hits int) {
	for range scaled(3, 1) {
		before := s.retried("postgres", "")
		check(s.t, s.cluster.Stop(s.t.Context(), devstack.Immediate))
		s.awaitUnderLoad("retries", s.retries("postgres", "", before))
		s.pause(s.between(0, lasting(5*time.Second, time.Second)))
		check(s.t, s.cluster.Start(s.t.Context()))
		s.healed()
		s.await("all partitions move, or are at their ends", s.flows())
		hits++
	}
	return hits
}

// The method flows returns a check for await. It succeeds when each partition has moved or is at
// its end.
func (s *scene) flows() func() string {
	before := s.positions()
	return func() string {
		now, ends := s.positions(), s.ends()
		for p, end := range ends {
			if now[p] <= before[p] && now[p] != end {
				return fmt.Sprintf("partition %d is at %d of %d", p, now[p], end)
			}
		}
		return ""
	}
}

// backendsFrozen freezes the postmaster and all its children. Connections stay open but get no
// answers.
func backendsFrozen(s *scene) int {
	before := s.retried("postgres", "")
	frozen := family(s.cluster.PID())
	signal(s, frozen, syscall.SIGSTOP)
	began := time.Now()
	for _, r := range s.replicas {
		wait.Until(s.t, 10*time.Second, "unready", r.Answers("/readyz", 503, "PostgreSQL"))
	}
	s.pause(time.Minute - time.Since(began))
	signal(s, frozen, syscall.SIGCONT)
	s.healed()
	s.await("all partitions move, or are at their ends", s.flows())
	return s.retried("postgres", "") - before
}

func signal(s *scene, pids []int, what syscall.Signal) {
	s.t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, what); err != nil && err != syscall.ESRCH {
			s.t.Fatalf("%v to %d: %v", what, pid, err)
		}
	}
}

// family returns the ids of a process and its children, the process first.
func family(pid int) []int {
	pids := []int{pid}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			pids = append(pids, child)
		}
	}
	return pids
}

// readOnly makes the server refuse writes, as in the middle of a failover.
func readOnly(s *scene) int {
	before := s.retried("postgres", "25006")
	check(s.t, s.cluster.Set(s.t.Context(), "default_transaction_read_only", "on"))
	s.await("retries", s.retries("postgres", "25006", before))
	s.pause(5 * time.Second)
	hits := s.retried("postgres", "25006") - before
	check(s.t, s.cluster.Set(s.t.Context(), "default_transaction_read_only", ""))
	return hits
}

// rowLocked locks the row of one account, as a person in psql can do, while a second replica joins.
// Only the partition of that account may stop.
func rowLocked(s *scene) (hits int) {
	first := s.newcomers(1)[0]
	s.sendAndAwait([]testbank.Record{first})
	account := string(first.Key)
	tx := must(s.db.Begin(s.t.Context()))(s.t)
	defer func() { _ = tx.Rollback(s.t.Context()) }() // after a failure, the pool could not be closed otherwise
	check(s.t, tx.QueryRow(s.t.Context(), "SELECT account_id FROM account_balance WHERE account_id = $1 FOR UPDATE", account).Scan(&account))
	// The stream itself may have no further event that is written to the row.
	check(s.t, s.producer.Send(s.t.Context(), []testbank.Record{
		{Partition: first.Partition, Key: first.Key, Value: []byte(event(account, 2, "FundsCredited", good))},
	}))
	s.await("a flush waits for the row", func() string {
		var waiting int
		if err := s.db.QueryRow(s.t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting); err != nil || waiting == 0 {
			return fmt.Sprintf("%d wait, error %v", waiting, err)
		}
		return ""
	})
	began := time.Now()
	joining := s.launch("")
	s.await("the other member has partitions", joining.assigned())
	held := lockHeld(s)
	before := s.positions()
	for time.Since(began) < held {
		s.pause(200 * time.Millisecond)
		var waiting int
		check(s.t, s.db.QueryRow(s.t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted").Scan(&waiting))
		hits += waiting
	}
	moved := 0
	for p, at := range s.positions() {
		if at > before[p] || at == s.ends()[p] {
			moved++
		}
	}
	if moved < int(s.setting.partitions)-1 {
		s.t.Errorf("with one row locked only %d of %d partitions moved on", moved, s.setting.partitions)
	}
	check(s.t, tx.Rollback(s.t.Context()))
	return hits
}

// lockHeld returns how long rowLocked holds the lock. PROJECTOR_FAULTS_LOCK=5m imitates a person
// who leaves a transaction open for longer.
func lockHeld(s *scene) time.Duration {
	if text := os.Getenv("PROJECTOR_FAULTS_LOCK"); text != "" {
		return must(time.ParseDuration(text))(s.t)
	}
	return 20 * time.Second
}

// slowLine slows the connection to the database down.
func slowLine(s *scene) int {
	s.proxy.Slow(s.between(20*time.Millisecond, 80*time.Millisecond), 64<<10)
	s.pause(10 * time.Second)
	s.await("progress on the slow line", s.moved())
	s.proxy.Slow(0, 0)
	return s.proxy.Delayed()
}

// grantLost revokes a privilege, as a wrong migration of another team could do.
func grantLost(s *scene) int {
	s.exec(fmt.Sprintf("CREATE ROLE %[1]s LOGIN PASSWORD 'correct-horse'; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO %[1]s", "clerk"))
	for len(s.replicas) > 0 {
		r := s.replicas[0]
		r.Terminate()
		s.remove(r)
	}
	s.through = strings.Replace(s.through, "postgres:"+s.password()+"@", "clerk:correct-horse@", 1)
	at := sum(s.positions())
	s.launch("")
	s.await("progress of the other role", s.passed(at+1))
	s.exec("REVOKE UPDATE ON account_balance FROM clerk")
	s.await("retries", s.retries("postgres", "42501", 0))
	wait.Until(s.t, 10*time.Second, "unready at once", s.replicas[0].Answers("/readyz", 503, "42501"))
	s.pause(5 * time.Second)
	hits := s.retried("postgres", "42501")
	s.exec("GRANT UPDATE ON account_balance TO clerk")
	return hits
}

// standbyPromoted fails over to a standby that lacks the last commits. The offsets in Kafka are
// then beyond the positions in the database.
func standbyPromoted(s *scene) int {
	standby := must(s.cluster.Clone(s.t.Context(), devstack.Standby))(s.t)
	s.closeAtEnd(standby)
	s.await("the replication runs", s.count("SELECT count(*) FROM pg_stat_replication", 1))
	at := sum(s.positions())
	s.awaitUnderLoad("progress", s.passed(at+1))
	check(s.t, standby.Lag(s.t.Context()))
	s.await("the replication has stopped", s.count("SELECT count(*) FROM pg_stat_replication", 0))
	at = sum(s.positions())
	s.awaitUnderLoad("commits the standby has not heard of", s.passed(at+int64(s.setting.records/20)))
	s.awaitUnderLoad("offsets committed to Kafka that the standby has not heard of", func() string {
		if now := sum(must(s.reader.Committed(s.t.Context(), s.admin))(s.t)); now <= at {
			return fmt.Sprintf("%d, waiting for more than %d", now, at)
		}
		return ""
	})
	s.watch.pauseOffsetCheck(true)
	lost := sum(s.positions())
	check(s.t, s.cluster.Stop(s.t.Context(), devstack.Immediate))
	check(s.t, standby.Promote(s.t.Context()))
	s.moveTo(standby)
	lost -= sum(s.positions())
	s.healed()
	s.rewound()
	return int(max(0, lost))
}

// rewound waits until no position in the database is behind the committed offset in Kafka. It then
// turns the watcher's check of offsets on again.
func (s *scene) rewound() {
	s.t.Helper()
	s.await("positions are beyond Kafka's offsets again", func() string {
		committed, positions := must(s.reader.Committed(s.t.Context(), s.admin))(s.t), s.positions()
		for p, at := range committed {
			if positions[p] < at {
				return fmt.Sprintf("committed %v, durable %v", committed, positions)
			}
		}
		return ""
	})
	s.watch.pauseOffsetCheck(false)
}

func (s *scene) count(query string, want int) func() string {
	return func() string {
		var n int
		if err := s.db.QueryRow(s.t.Context(), query).Scan(&n); err != nil || n != want {
			return fmt.Sprintf("%s: %d, want %d, error %v", query, n, want, err)
		}
		return ""
	}
}

// backupRestored replaces the database by an earlier backup while the replicas work.
func backupRestored(s *scene) int {
	backup := must(s.cluster.Clone(s.t.Context(), devstack.Backup))(s.t)
	s.closeAtEnd(backup)
	at := sum(s.positions())
	s.await("work after the backup", s.passed(at+int64(s.setting.records/10)))
	s.watch.pauseOffsetCheck(true)
	before := sum(s.positions())
	check(s.t, s.cluster.Stop(s.t.Context(), devstack.Immediate))
	check(s.t, backup.Start(s.t.Context()))
	s.moveTo(backup)
	lost := before - sum(s.positions())
	s.healed()
	s.rewound()
	return int(max(0, lost))
}
