//go:build chromium

package telemetry

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
)

// browser is a Chromium process that a test controls. It is controlled over two pipes by the Chrome
// DevTools Protocol. The messages are JSON documents, and each ends with a zero byte.
type browser struct {
	cmd     *exec.Cmd
	profile string
	to      io.WriteCloser
	from    io.ReadCloser

	mu       sync.Mutex // guards the fields below and the writes to the pipe
	last     int
	answers  map[int]chan message
	sessions map[string]func(method string, params json.RawMessage)
	gone     error
}

// message is a command, its response or an event.
type message struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

func startBrowser() (*browser, error) {
	profile, err := os.MkdirTemp("", "chromium-")
	if err != nil {
		return nil, err
	}
	flags := []string{
		"--headless", "--remote-debugging-pipe", "--user-data-dir=" + profile, "--no-first-run", "--disable-extensions",
		"--disable-background-networking", "--disable-dev-shm-usage",
		"--disable-gpu", // this machine has no GPU, and emulating one is slow
	}
	if os.Geteuid() == 0 {
		flags = append(flags, "--no-sandbox") // Chromium's sandbox does not work as root
	}
	theirIn, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	b := &browser{
		cmd: exec.CommandContext(context.Background(), "chromium", flags...), profile: profile, to: to, from: from,
		answers: map[int]chan message{}, sessions: map[string]func(string, json.RawMessage){},
	}
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut} // Chromium uses the file descriptors 3 and 4
	err = b.cmd.Start()
	_, _ = theirIn.Close(), theirOut.Close()
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(profile))
	}
	go b.read()
	err = b.call(context.Background(), "", "Browser.getVersion", nil, nil)
	return b, err
}

func (b *browser) close() {
	_ = b.call(context.Background(), "", "Browser.close", nil, nil)
	_ = b.cmd.Wait()
	_ = os.RemoveAll(b.profile)
}

// read passes each response to the call that waits for it, and each event to the function of its
// session. It ends when the browser ends.
func (b *browser) read() {
	from := bufio.NewReader(b.from)
	for {
		text, err := from.ReadBytes(0)
		var m message
		if err == nil {
			err = json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m)
		}
		b.mu.Lock()
		if err != nil {
			b.gone = errors.Join(errors.New("the browser has ended"), err)
			for id, answer := range b.answers {
				close(answer)
				delete(b.answers, id)
			}
			b.mu.Unlock()
			return
		}
		answer, heard := b.answers[m.ID], b.sessions[m.SessionID]
		delete(b.answers, m.ID)
		b.mu.Unlock()
		switch {
		case answer != nil:
			answer <- m
		case m.Method != "" && heard != nil:
			heard(m.Method, m.Params)
		}
	}
}

// listen registers a function for the events of a session. The function must not wait for
// responses.
func (b *browser) listen(session string, heard func(method string, params json.RawMessage)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions[session] = heard
}

// call sends a command to a session, or to the browser itself, and waits for the response.
func (b *browser) call(ctx context.Context, session, method string, params, result any) error {
	text, err := json.Marshal(params)
	if err != nil {
		return err
	}
	if params == nil || string(text) == "null" {
		text = []byte("{}")
	}
	answer, err := b.send(message{SessionID: session, Method: method, Params: text})
	if err != nil {
		return err
	}
	select {
	case m, there := <-answer:
		switch {
		case !there:
			return b.gone
		case m.Error != nil:
			return errors.New(m.Error.Message)
		case result == nil:
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *browser) send(m message) (<-chan message, error) {
	answer := make(chan message, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone != nil {
		return nil, b.gone
	}
	b.last++
	m.ID = b.last
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	b.answers[m.ID] = answer
	_, err = b.to.Write(append(text, 0))
	return answer, err
}
