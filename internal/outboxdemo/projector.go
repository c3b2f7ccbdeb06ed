package outboxdemo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"projector/internal/devstack"
)

// startProjectors starts a projector for each pipeline.
func (s *stage) startProjectors(ctx context.Context) error {
	for _, p := range s.pipelines {
		if err := s.migrate(ctx, p); err != nil {
			return err
		}
		args := append([]string{
			"run", "--format=debezium-outbox", "--topic=" + p.topic, "--group=" + p.topic + "-projector",
			"--listen=127.0.0.1:0", "--log-format=json",
		}, p.flags...)
		program, err := devstack.StartProgram(s.command(context.WithoutCancel(ctx), p, args...), s.options.Log)
		if err != nil {
			return err
		}
		p.projector = program
		s.closers = append(s.closers, program.Kill)
		s.say("projector %s", strings.Join(append(args[:3:3], p.flags...), " "))
	}
	return nil
}

func (s *stage) migrate(ctx context.Context, p *pipeline) error {
	_, err := s.once(ctx, p, "migrate")
	return err
}

// verify answers how many accounts `projector verify`, which looks with eyes of its
// own, finds to be as in the bank's books. It is an error when any is not.
func (s *stage) verify(ctx context.Context, p *pipeline) (matched int, err error) {
	output, err := s.once(ctx, p, "verify", "--ledger-query=SELECT account_id, version, balance FROM ledger_balance", "--output=json")
	if err != nil {
		return 0, err
	}
	var answer struct{ Matched *int }
	if err := json.Unmarshal(output, &answer); err != nil || answer.Matched == nil {
		return 0, errors.Join(errors.New("projector verify does not say how many accounts matched"), err)
	}
	return *answer.Matched, nil
}

// once runs a command of the projector to its end and answers what it prints.
func (s *stage) once(ctx context.Context, p *pipeline, args ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := s.command(ctx, p, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("projector %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}

// command is the projector with nothing but its own environment.
func (s *stage) command(ctx context.Context, p *pipeline, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.options.Projector, args...) //nolint:gosec // G204: the caller says what to run
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir(),
		"KAFKA_BROKERS=" + strings.Join(s.kafka.Addrs(), ","),
		"DATABASE_URL=" + s.postgres.DatabaseURL(p.readModelDatabase()),
		"LEDGER_URL=" + s.postgres.DatabaseURL(p.bankDatabase),
	}
	return cmd
}

// stopProjectors asks the projectors to end, which they must do as told.
func (s *stage) stopProjectors(ctx context.Context) error {
	for _, p := range s.pipelines {
		if err := p.projector.Stop(ctx); err != nil {
			return fmt.Errorf("stop the projector of %s: %w", p.topic, err)
		}
	}
	return nil
}
