// Command recording runs the demo and heals one of its accounts. It draws the terminal's output as
// an animated SVG for the README. `make demo-recording` runs it.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"time"
)

func main() {
	program := flag.String("projector", "bin/projector", "the program")
	file := flag.String("file", "docs/pictures/demo.svg", "the picture to write")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := record(ctx, *program, *file)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

// screen is one command and what it printed.
type screen struct {
	command string
	lines   []string
}

// record runs the demo until the demo has checked its result. It then runs the commands that the
// demo proposes for one account.
func record(ctx context.Context, program, file string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	demo := exec.CommandContext(ctx, program, "demo", "--stay", "--accounts=200", "--events=20000")
	demo.Cancel = func() error { return demo.Process.Signal(os.Interrupt) }
	demo.WaitDelay = time.Minute
	out, err := demo.StdoutPipe()
	if err != nil {
		return err
	}
	if err := demo.Start(); err != nil {
		return err
	}
	defer func() {
		cancel()
		_ = demo.Wait() // the demo was interrupted on purpose
	}()
	printed, err := untilReady(out)
	if err != nil {
		return err
	}
	screens := []screen{{"make demo ARGS=--stay", section(printed, "Check against", "What to type")}}
	env := append(os.Environ(), exports(printed)...)
	for _, args := range proposed(printed) {
		command := exec.CommandContext(ctx, program, args...) //nolint:gosec // G204: the caller's program
		command.Env = env
		text, err := command.Output()
		if err != nil {
			return fmt.Errorf("projector %s: %w", strings.Join(args, " "), err)
		}
		screens = append(screens, screen{"projector " + strings.Join(args, " "), strings.Split(strings.TrimSpace(string(text)), "\n")})
	}
	return os.WriteFile(file, []byte(draw(screens)), 0o644) //nolint:gosec // G306: part of the documentation
}

// untilReady reads the demo's output up to its last proposal.
func untilReady(out io.Reader) (string, error) {
	var printed strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		printed.WriteString(lines.Text() + "\n")
		if strings.TrimSpace(lines.Text()) == "Ctrl-C" {
			return printed.String(), nil
		}
	}
	return "", fmt.Errorf("the demo ended before its check: %w", lines.Err())
}

// section returns the lines that begin with one heading and end before another heading.
func section(printed, from, to string) []string {
	_, text, _ := strings.Cut(printed, from)
	text, _, _ = strings.Cut(from+text, to)
	return strings.Split(strings.TrimSpace(text), "\n")
}

// exports returns the variables in the demo's export lines, except PATH.
func exports(printed string) (env []string) {
	for _, line := range regexp.MustCompile(`(?m)^ +export (.*)$`).FindAllStringSubmatch(printed, -1) {
		for _, variable := range strings.Fields(line[1]) {
			if !strings.HasPrefix(variable, "PATH=") {
				env = append(env, variable)
			}
		}
	}
	return env
}

// proposed returns the commands that the demo proposes for the first account. They show the gaps,
// show the account, plan a change, apply the change, and show the account again.
func proposed(printed string) [][]string {
	skip := regexp.MustCompile(`projector (account skip (\S+) .*) --yes`).FindStringSubmatch(printed)
	if skip == nil {
		return nil
	}
	plan, show := strings.Fields(skip[1]), []string{"account", "show", skip[2]}
	return [][]string{{"gaps"}, show, plan, append(plan[:len(plan):len(plan)], "--yes"), show}
}
