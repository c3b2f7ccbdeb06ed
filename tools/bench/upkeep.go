package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// upkeep has the write-ahead log, the checkpoints and the vacuums of a run, and how the table
// changed.
type upkeep struct {
	WALBytes, FullPages int64 // written to the write-ahead log; a full page follows each checkpoint
	Updates, HOTUpdates int64
	Checkpoints         int     // finished during the run
	CheckpointSeconds   float64 // of their writing and flushing
	CheckpointBytes     int64   // written by them to the tables and indexes
	Vacuums             int     // automatic vacuums of the table, finished during the run
	VacuumSeconds       float64 // of their duration
	VacuumCPU           float64 // in seconds
	VacuumWALBytes      int64
	RemovedRows         int64 // removed by the vacuums
	DeadRows            int64 // left at the end

	TableBefore, TableAfter, IndexBefore, IndexAfter int64 // in bytes
}

// usage has the values of PostgreSQL's counters at one time.
type usage struct {
	wal, fullPages, inserts, updates, hot, dead, table, index int64
	log                                                       int // size of the server's log
}

// rows returns how many rows were inserted or updated.
func (u *usage) rows() int64 { return u.inserts + u.updates }

// usage reads PostgreSQL's counters of the write-ahead log and of the watcher's table. A session
// may report its last rows only when it ends, so the method waits until all other sessions have
// ended.
func (s *stack) usage(ctx context.Context, w *watcher) (u usage, err error) {
	if err := w.awaitAlone(ctx); err != nil {
		return u, err
	}
	err = w.conn.QueryRow(ctx, `SELECT (pg_current_wal_lsn() - '0/0')::bigint, wal_fpi, n_tup_ins, n_tup_upd, n_tup_hot_upd,
		n_dead_tup, pg_table_size(relid), pg_indexes_size(relid)
		FROM pg_stat_user_tables, pg_stat_wal WHERE relname = $1`, w.table.relation).
		Scan(&u.wal, &u.fullPages, &u.inserts, &u.updates, &u.hot, &u.dead, &u.table, &u.index)
	if err != nil {
		return u, err
	}
	text, err := os.ReadFile(s.log)
	u.log = len(text)
	return u, err
}

// count adds to a run the changes of PostgreSQL's counters since the earlier reading.
func (s *stack) count(ctx context.Context, run *Run, w *watcher, before *usage) error {
	after, err := s.usage(ctx, w)
	if err != nil {
		return err
	}
	run.RowsWritten = after.rows() - before.rows()
	run.Upkeep, err = s.upkeep(w.table.relation, before, &after)
	return err
}

const pageBytes = 8192

var (
	checkpointed = regexp.MustCompile(`checkpoint complete: wrote (\d+) buffers.* total=([\d.]+) s`)
	vacuumed     = regexp.MustCompile(`(?s)automatic [a-z ]*vacuum[a-z ]* of table "[^"]*\.([a-z_]+)":.*?tuples: (\d+) removed.*?` +
		`WAL usage: .*? (\d+) bytes.*?CPU: user: ([\d.]+) s, system: ([\d.]+) s, elapsed: ([\d.]+) s`)
)

// upkeep returns the differences between two readings of the counters. Checkpoints and vacuums are
// from the server's log.
func (s *stack) upkeep(of string, before, after *usage) (*upkeep, error) {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return nil, err
	}
	k := &upkeep{
		WALBytes: after.wal - before.wal, FullPages: after.fullPages - before.fullPages,
		Updates: after.updates - before.updates, HOTUpdates: after.hot - before.hot, DeadRows: after.dead,
		TableBefore: before.table, TableAfter: after.table, IndexBefore: before.index, IndexAfter: after.index,
	}
	k.read(string(text[before.log:after.log]), of)
	return k, nil
}

// read adds the checkpoints in the server's log, and the vacuums of one table in this log.
func (k *upkeep) read(log, of string) {
	number := func(text string) float64 {
		f, _ := strconv.ParseFloat(text, 64)
		return f
	}
	for _, found := range checkpointed.FindAllStringSubmatch(log, -1) {
		k.Checkpoints++
		k.CheckpointBytes += pageBytes * int64(number(found[1]))
		k.CheckpointSeconds += number(found[2])
	}
	for _, found := range vacuumed.FindAllStringSubmatch(log, -1) {
		if found[1] != of {
			continue
		}
		k.Vacuums++
		k.RemovedRows += int64(number(found[2]))
		k.VacuumWALBytes += int64(number(found[3]))
		k.VacuumCPU += number(found[4]) + number(found[5])
		k.VacuumSeconds += number(found[6])
	}
}

// largeLines are the lines of the table of large runs.
var largeLines = []struct {
	what string
	of   func(r *Run, k *upkeep) string
}{
	{"events; seconds", func(r *Run, _ *upkeep) string {
		return fmt.Sprintf("%s; %s", thousands(float64(r.Events)), thousands(r.Seconds))
	}},
	{"events/s", func(r *Run, _ *upkeep) string { return thousands(eventsPerSecond(r)) }},
	{"latency: p50; p99; max, ms", func(r *Run, _ *upkeep) string {
		if r.Latency == nil {
			return "–"
		}
		return fmt.Sprintf("%.1f; %.1f; %s", r.Latency.P50, r.Latency.P99, thousands(r.Latency.Max))
	}},
	{"CPU, share of a core: projector; PostgreSQL", func(r *Run, _ *upkeep) string {
		return fmt.Sprintf("%.0f %%; %.0f %%", 100*r.CPU.Subject/r.Seconds, 100*r.CPU.Postgres/r.Seconds)
	}},
	{"projector's peak MiB", func(r *Run, _ *upkeep) string { return fmt.Sprintf("%.0f", r.PeakMiB) }},
	{"WAL bytes an event; full pages an event", func(r *Run, k *upkeep) string {
		rows := float64(r.RowsWritten)
		return fmt.Sprintf("%s; %.2f", thousands(float64(k.WALBytes)/rows), float64(k.FullPages)/rows)
	}},
	{"HOT updates", func(_ *Run, k *upkeep) string {
		if k.Updates == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f %%", 100*float64(k.HOTUpdates)/float64(k.Updates))
	}},
	{"checkpoints, finished: number; minutes; GB written", func(_ *Run, k *upkeep) string {
		return fmt.Sprintf("%d; %.0f; %.1f", k.Checkpoints, k.CheckpointSeconds/60, gigabytes(k.CheckpointBytes))
	}},
	{"autovacuum, finished: number; minutes; CPU s; WAL GB; dead rows removed", func(_ *Run, k *upkeep) string {
		return fmt.Sprintf("%d; %.0f; %.0f; %.1f; %s", k.Vacuums, k.VacuumSeconds/60, k.VacuumCPU, gigabytes(k.VacuumWALBytes), thousands(float64(k.RemovedRows)))
	}},
	{"dead rows at the end", func(_ *Run, k *upkeep) string { return thousands(float64(k.DeadRows)) }},
	{"table, GB", func(_ *Run, k *upkeep) string {
		return fmt.Sprintf("%.2f → %.2f", gigabytes(k.TableBefore), gigabytes(k.TableAfter))
	}},
	{"index, GB", func(_ *Run, k *upkeep) string {
		return fmt.Sprintf("%.2f → %.2f", gigabytes(k.IndexBefore), gigabytes(k.IndexAfter))
	}},
	{"disturbed; date, commit", func(r *Run, _ *upkeep) string {
		disturbed := "no"
		if r.Disturbed {
			disturbed = "yes"
		}
		return fmt.Sprintf("%s; %s, %s", disturbed, r.When.Format("2006-01-02"), r.Commit)
	}},
}

func gigabytes(bytes int64) float64 { return float64(bytes) / 1e9 }

// renderLarge writes the runs over large tables, one in each column.
func renderLarge(b *strings.Builder, r *results) {
	var runs []*Run
	for i := range r.Runs {
		is := func(w workload) bool { return w.large && w.name == r.Runs[i].Workload }
		if slices.ContainsFunc(workloads, is) && r.Runs[i].Upkeep != nil {
			runs = append(runs, &r.Runs[i])
		}
	}
	if len(runs) == 0 {
		return
	}
	b.WriteString("### Large tables\n\n| ")
	for _, run := range runs {
		b.WriteString("| " + run.Workload + " ")
	}
	b.WriteString("|\n|---" + strings.Repeat("|---", len(runs)) + "|\n")
	for _, line := range largeLines {
		b.WriteString("| " + line.what + " ")
		for _, run := range runs {
			b.WriteString("| " + line.of(run, run.Upkeep) + " ")
		}
		b.WriteString("|\n")
	}
	b.WriteString("\nOne run each.\n\n")
}
