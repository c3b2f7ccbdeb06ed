package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// figure matches a placeholder in a page and its current number: <!--
// perf:WORKLOAD[.SUBJECT].MEASURE -->819,000<!-- end -->.
var figure = regexp.MustCompile(`<!-- perf:([a-z0-9.-]+) -->[^<]*<!-- end -->`)

// figures replaces the numbers in the placeholders of a page by the results.
func figures(text string, r *results) (string, error) {
	var problem error
	filled := figure.ReplaceAllStringFunc(text, func(found string) string {
		name := figure.FindStringSubmatch(found)[1]
		value, err := valueOf(name, r)
		if err != nil {
			problem = errors.Join(problem, err)
		}
		return "<!-- perf:" + name + " -->" + value + "<!-- end -->"
	})
	return filled, problem
}

// valueOf returns a figure by its name. Examples: uniform.events, uniform.raw.events,
// uniform.by-raw, partitions-64.by-partitions-8, steady.p99.
func valueOf(name string, r *results) (string, error) {
	workload, rest, _ := strings.Cut(name, ".")
	who, what, named := strings.Cut(rest, ".")
	if !named {
		who, what = string(subjectProjector), rest
		if workload == "steady" {
			who = string(subjectSteady)
		}
	}
	runs := counted(r.runsOf(workload, subject(who)))
	if len(runs) == 0 {
		return "", fmt.Errorf("figure %s: there is no run of %s over %s", name, who, workload)
	}
	if by, found := strings.CutPrefix(what, "by-"); found {
		c := comparison{workload: workload, subject: subject(who), byW: workload, byS: subject(by), measure: eventsPerSecond}
		if len(r.runsOf(workload, subject(by))) == 0 {
			c.byW, c.byS = by, subject(who)
		}
		clean, disturbed := c.values(r)
		if len(clean) == 0 {
			clean = disturbed
		}
		if len(clean) == 0 {
			return "", fmt.Errorf("figure %s: nothing to compare with", name)
		}
		return fmt.Sprintf("%.2f", spreadOf(clean).median), nil
	}
	switch what {
	case "events":
		return thousands(rounded(medianOf(runs, eventsPerSecond))), nil
	case "peak":
		return fmt.Sprintf("%.0f", medianOf(runs, peakMemory)), nil
	case "cpu":
		return fmt.Sprintf("%.1f", 1e6*medianOf(runs, cpuAnEvent)), nil
	case "postgres":
		return fmt.Sprintf("%.1f", 1e6*medianOf(runs, postgresAnEvent)), nil
	case "p50":
		return span(runs, medianLatency, 1) + " ms", nil
	case "p99":
		return span(runs, func(r *Run) float64 { return r.Latency.P99 }, 1) + " ms", nil
	case "core":
		return span(runs, coreShare, 100) + " %", nil
	case "postgres-core":
		return span(runs, func(r *Run) float64 { return r.CPU.Postgres / r.Seconds }, 100) + " %", nil
	default:
		return "", fmt.Errorf("figure %s: %q is not measured", name, what)
	}
}

func postgresAnEvent(r *Run) float64 { return r.CPU.Postgres / float64(r.Events) }

// span returns the smallest and the largest value of all rounds.
func span(runs []Run, m measure, factor float64) string {
	values := make([]float64, len(runs))
	for i := range runs {
		values[i] = math.Round(factor * m(&runs[i]))
	}
	s := spreadOf(values)
	if s.min == s.max {
		return fmt.Sprint(s.min)
	}
	return fmt.Sprintf("%.0f to %.0f", s.min, s.max)
}

// rounded rounds a number to three significant digits.
func rounded(f float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(f))-2)
	return math.Round(f/unit) * unit
}

// pages returns the pages with figures, by path. They are the pages in the document's folder and
// the README in the folder above.
func pages(document string, r *results) (map[string]string, error) {
	folder := filepath.Dir(document)
	paths, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		return nil, err
	}
	filled := map[string]string{}
	for _, path := range append(paths, filepath.Join(folder, "..", "README.md")) {
		text, err := os.ReadFile(path) //nolint:gosec // G304: the operator's choice
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if filled[path], err = figures(string(text), r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return filled, nil
}
