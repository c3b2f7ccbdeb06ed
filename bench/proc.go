package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// clockTicks is the unit of CPU times in /proc: USER_HZ, which is 100 on every
// architecture Linux and Go share.
const clockTicks = 100

// procStat answers the fields of /proc/PID/stat behind the command name; nil when
// the process is gone.
func procStat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

func ticks(fields []string) (seconds float64) {
	for _, field := range fields {
		n, _ := strconv.ParseFloat(field, 64)
		seconds += n / clockTicks
	}
	return seconds
}

// processCPU is what a process has used, in seconds; 0 when it is gone.
func processCPU(pid int) float64 {
	if f := procStat(pid); len(f) > 13 {
		return ticks(f[11:13])
	}
	return 0
}

// treeCPU is what a process and its children have used, those that ended too.
func treeCPU(root int) float64 {
	var sum float64
	parent := strconv.Itoa(root)
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if f := procStat(pid); len(f) > 15 && (pid == root || f[1] == parent) {
			sum += ticks(f[11:15])
		}
	}
	return sum
}

// machineCPU is what the whole machine has used, and what the hypervisor kept from
// it, in seconds.
func machineCPU() (busy, steal float64) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	f := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal …
	if len(f) < 9 {
		return 0, 0
	}
	return ticks(f[1:4]) + ticks(f[6:8]), ticks(f[8:9])
}

// memory reads a process's resident set, now and at its peak, in MiB. VmHWM and not
// getrusage: what wait4 tells of a child includes the parent it was forked from.
func memory(pid int) (now, peak float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch name {
		case "VmRSS":
			now = kib / 1024
		case "VmHWM":
			peak = kib / 1024
		}
	}
	return now, peak
}
