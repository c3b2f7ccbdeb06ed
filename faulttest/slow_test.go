//go:build faults

package faulttest

import (
	"fmt"
	"testing"
	"time"

	"projector/e2e/wait"
)

// slowLimit is the time within which some records must become durable, even if the database is very
// slow.
var slowLimit = lasting(90*time.Second, 3*time.Minute)

// crawl sets the time that each row of account_balance takes to be written. Zero ends the delay at
// once, also for running statements.
func (s *scene) crawl(row time.Duration) {
	s.t.Helper()
	if row == 0 {
		s.exec("UPDATE slowness SET seconds = 0")
		s.exec("DROP TRIGGER crawl ON account_balance; DROP FUNCTION crawl(); DROP TABLE slowness")
		return
	}
	s.exec(fmt.Sprintf(`CREATE TABLE slowness AS SELECT %f::float8 AS seconds;
		CREATE FUNCTION crawl() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
		BEGIN PERFORM pg_sleep(seconds) FROM public.slowness; RETURN NEW; END $$;
		CREATE TRIGGER crawl BEFORE INSERT OR UPDATE ON account_balance FOR EACH ROW EXECUTE FUNCTION crawl();`, row.Seconds()))
}

// databaseCrawls makes each row of account_balance take 10 ms to be written while many events
// arrive. PostgreSQL cannot write the waiting records before the deadline of one attempt.
func databaseCrawls(s *scene) int {
	began := time.Now()
	s.crawl(10 * time.Millisecond)
	s.feed.hold()
	front := s.ends()
	check(s.t, s.producer.Send(s.t.Context(), s.newcomers(int(s.setting.partitions)*scaled(6000, 3300))))
	s.feed.release()
	p := s.startPulse()
	wait.Until(s.t, 2*slowLimit, "a part of what is waiting is durable in every partition", func() string {
		p.keptUp(slowLimit)
		return s.beyond(front)()
	})
	s.pause(lasting(40*time.Second, 0) - time.Since(began))
	s.crawl(0)
	p.end()
	s.healed()
	return p.totalMoves()
}

// The method beyond returns a check for await. It succeeds when every position is beyond the given
// offset.
func (s *scene) beyond(offsets map[int32]int64) func() string {
	return func() string {
		now := s.positions()
		for p, o := range offsets {
			if now[p] <= o {
				return fmt.Sprintf("partition %d is at %d of at least %d", p, now[p], o)
			}
		}
		return ""
	}
}

// TestSlowDatabase writes 120,000 new accounts to a slow database. The database can write 900 or
// 100 rows per second in total.
func TestSlowDatabase(t *testing.T) {
	kafka := broker(t)
	for _, rate := range []int{900, 100} {
		t.Run(fmt.Sprint(rate, " rows a second"), func(t *testing.T) {
			t.Parallel() // the test mostly waits
			s := newScene(t, kafka, setting{partitions: 3, replicas: 1})
			s.startWatch()
			s.crawl(time.Second * time.Duration(s.setting.partitions) / time.Duration(rate))
			check(t, s.producer.Send(t.Context(), s.newcomers(120_000)))
			began := time.Now()
			s.launch("")
			p := s.startPulse()
			wait.Until(t, 4*slowLimit, "every partition goes on moving", p.movedTimes(3, slowLimit))
			waiting := sum(s.ends()) - sum(s.positions())
			s.crawl(0)
			p.end()
			struck := time.Since(began)
			s.healed()
			wait.Until(t, s.setting.recovers, "lag 0 on the fast database", s.arrived)
			if waiting == 0 {
				t.Error("the database was slow, but not for long enough: this proves nothing")
			}
			s.exact(t.Name(), p.totalMoves(), struck, time.Since(s.healedAt))
		})
	}
}
