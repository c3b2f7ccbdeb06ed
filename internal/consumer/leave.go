package consumer

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"projector/errclass"
)

// A stop may take 10 s, of which DrainWithin is for flushing and these for the rest.
// The client's calls may outlast their contexts, when a broker is silent: so each step
// is waited for, and then the next one comes all the same. What is abandoned can do
// nothing any more: its contexts have ended, or the client is cut off.
const (
	// lastCommitWithin is how long the last commit may take.
	lastCommitWithin = time.Second
	// leaveWithin is how long the member may take to leave the group, and then how long
	// leaving it without the member may take.
	leaveWithin = time.Second
	// abandonAfter is how long the end of tasks is waited for whose contexts have ended.
	abandonAfter = 200 * time.Millisecond
)

// patiently calls fn and returns when it has, or when its time is up.
func patiently(fn func(), within time.Duration) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		fn()
	}()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// shutDown drains all workers, commits and leaves the group.
func (c *Consumer) shutDown() {
	ctx, cancel := context.WithTimeoutCause(context.Background(), c.cfg.DrainWithin, errors.New("shutting down"))
	defer cancel()
	patiently(func() { c.release(ctx, c.assignment(), false) }, c.cfg.DrainWithin+lastCommitWithin)
	c.leave()
}

// leave leaves the group and closes the client.
//
// A join that is under way lasts until the whole group has joined or its dead members
// have timed out, and the client can say that it leaves only behind it, on the same
// connection. So that a stop does not wait for the dead, the client is then cut off,
// and what it wanted to say is said for it: a member that is just gone would be the
// next one to be waited for.
func (c *Consumer) leave() {
	left := make(chan struct{})
	go func() {
		c.cl.CloseAllowingRebalance()
		close(left)
	}()
	select {
	case <-left:
		return
	case <-time.After(leaveWithin):
	}
	member, _ := c.cl.GroupMetadata()
	c.cutOff()
	patiently(func() { <-left }, abandonAfter)
	if member == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	failed := make(chan error, 1)
	go func() { failed <- c.leaveFor(ctx, member) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		c.cfg.Log.Warn("left the group without being able to say so: it waits for this member's session to end",
			slog.Duration("session_timeout", c.cfg.SessionTimeout), slog.String("error", errclass.Safe(err)))
	}
}

// leaveFor has a member leave the group, on a connection of its own.
func (c *Consumer) leaveFor(ctx context.Context, member string) error {
	cl, err := kgo.NewClient(c.cfg.Client...)
	if err != nil {
		return err
	}
	defer cl.Close()
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Group, req.MemberID = c.cfg.Group, member // the one of old brokers, the other of new ones
	leaving := kmsg.NewLeaveGroupRequestMember()
	leaving.MemberID = member
	req.Members = append(req.Members, leaving)
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return err
	}
	for _, m := range resp.Members {
		if err := kerr.ErrorForCode(m.ErrorCode); err != nil {
			return err
		}
	}
	return nil
}
