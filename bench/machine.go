package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"projector/internal/devstack"
)

// machine names what the results were measured on.
type machine struct {
	CPU      string
	Cores    int
	MemoryMB int64
	Kernel   string
	OS       string
	Go       string
	Kafka    string
	Postgres string
	// FlushMicros is the median time of making 8 KiB durable where the database is.
	FlushMicros int64
}

func describeMachine(postgresVersion string) machine {
	return machine{
		CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(),
		MemoryMB: memoryMB(), Kernel: firstLine("/proc/sys/kernel/osrelease"),
		OS: strings.Trim(assigned("/etc/os-release", "PRETTY_NAME"), `"`),
		Go: runtime.Version(), Kafka: devstack.KafkaVersion, Postgres: postgresVersion,
		FlushMicros: flushMicros(),
	}
}

// same reports whether results of both may stand in one table.
func (m machine) same(other machine) bool {
	return m.CPU == other.CPU && m.Cores == other.Cores && m.MemoryMB == other.MemoryMB
}

func field(path, name string) string {
	text, _ := os.ReadFile(path) //nolint:gosec // G304: constants of this file
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func assigned(path, name string) string {
	text, _ := os.ReadFile(path) //nolint:gosec // G304: constants of this file
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, name+"="); found {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func firstLine(path string) string {
	text, err := os.ReadFile(path) //nolint:gosec // G304: constants of this file
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

func memoryMB() int64 {
	var kib int64
	for _, digit := range strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB") {
		if digit >= '0' && digit <= '9' {
			kib = kib*10 + int64(digit-'0')
		}
	}
	return kib >> 10
}

// flushMicros tells disks apart: what a commit has to wait for.
func flushMicros() int64 {
	file, err := os.CreateTemp("", "projector-bench-flush-")
	if err != nil {
		return -1
	}
	defer func() { _ = os.Remove(file.Name()) }()
	defer func() { _ = file.Close() }()
	page := make([]byte, 8192)
	const rounds = 101
	took := make([]time.Duration, rounds)
	for i := range took {
		start := time.Now()
		if _, err := file.WriteAt(page, 0); err != nil || file.Sync() != nil {
			return -1
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	return took[rounds/2].Microseconds()
}

// commit names the checkout that was measured.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
