// Package pgproxy is a proxy between a program and PostgreSQL that injects faults. It drops the
// reply to a COMMIT that was executed, slows the connection down, cuts it, or connects to another
// server. Like some poolers, it can ignore a parameter of new connections.
//
// The proxy parses only the server's messages and a client's first message, and supports no TLS.
// ListenRaw parses nothing, so it works with any server but cannot drop replies.
package pgproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Proxy is one proxy with its connections. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	raw      bool // the server's messages are not parsed
	running  sync.WaitGroup

	dropped atomic.Int64
	delayed atomic.Int64

	mu     sync.Mutex // guards the fields below
	target string     // host:port; if empty, connections are refused
	links  map[*link]bool
	lose   func() bool // nil means that no reply is dropped
	line   line
	ignore string // a parameter that is removed from a client's first message; if empty, none is
}

// line has the delay and the bandwidth of a connection. They apply to each direction.
type line struct {
	latency        time.Duration
	bytesPerSecond int
}

// link is one connection through the proxy.
type link struct{ client, server net.Conn }

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// Listen starts a proxy to the server at target (host:port).
func Listen(target string) (*Proxy, error) { return listen(target, false) }

// ListenRaw starts a proxy to a server of any protocol. It cannot drop replies.
func ListenRaw(target string) (*Proxy, error) { return listen(target, true) }

func listen(target string, raw bool) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("pgproxy: %w", err)
	}
	p := &Proxy{listener: listener, raw: raw, target: target, links: map[*link]bool{}}
	p.running.Go(p.accept)
	return p, nil
}

// ListenBefore starts a proxy to the server of a database and returns the database's URL through
// the proxy.
func ListenBefore(databaseURL string) (p *Proxy, through string, err error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return nil, "", errURL
	}
	if p, err = Listen(u.Host); err != nil {
		return nil, "", err
	}
	u.Host = p.Addr()
	return p, u.String(), nil
}

// errURL does not quote the URL, because the URL has a password.
var errURL = errors.New("pgproxy: the database's URL cannot be read")

// Addr returns the address of the proxy, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close closes the proxy and all connections.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.SwitchTo("")
	p.running.Wait()
	return err
}

// SwitchTo closes all connections. New connections go to target, or are refused if target is empty.
func (p *Proxy) SwitchTo(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	for l := range p.links {
		l.close()
	}
}

// LoseReplies calls the function lose after every executed COMMIT. If lose returns true, the proxy
// drops the reply and the connection. If lose is nil, nothing is dropped. Only one call runs at a
// time.
func (p *Proxy) LoseReplies(lose func() bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = lose
}

// Ignore removes a parameter, such as search_path, from the first message of each new connection.
func (p *Proxy) Ignore(parameter string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ignore = parameter
}

// Lost returns the number of dropped replies.
func (p *Proxy) Lost() int { return int(p.dropped.Load()) }

// Slow adds latency in both directions and limits the bandwidth of each connection. A zero removes
// the latency or the limit.
func (p *Proxy) Slow(latency time.Duration, bytesPerSecond int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = line{latency, bytesPerSecond}
}

// Delayed returns the number of delayed pieces of data.
func (p *Proxy) Delayed() int { return int(p.delayed.Load()) }

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	var server net.Conn
	err := errors.New("refused")
	if target != "" {
		server, err = (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", target)
	}
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{client, server}
	if !p.enter(l, target) {
		l.close()
		return
	}
	if err := p.begin(l); err != nil {
		l.close() // ends both directions below
	}
	var ways sync.WaitGroup
	ways.Go(func() { p.forward(l.server, l.client); l.close() })
	ways.Go(func() { p.forwardReplies(l); l.close() })
	ways.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// enter registers a connection. It returns false if the proxy's target is no longer the one to
// which the connection was opened.
func (p *Proxy) enter(l *link, target string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.target != target {
		return false
	}
	p.links[l] = true
	return true
}

// begin forwards the client's first message without the ignored parameter. If no parameter is
// ignored, it does nothing.
func (p *Proxy) begin(l *link) error {
	p.mu.Lock()
	ignore := p.ignore
	p.mu.Unlock()
	if ignore == "" {
		return nil
	}
	first, err := pgproto3.NewBackend(l.client, io.Discard).ReceiveStartupMessage()
	if err != nil {
		return err
	}
	if startup, is := first.(*pgproto3.StartupMessage); is {
		delete(startup.Parameters, ignore)
	}
	out, err := first.Encode(nil)
	if err == nil {
		_, err = l.server.Write(out)
	}
	return err
}

// forward copies the data of one direction unchanged.
func (p *Proxy) forward(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.delay(n)
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// forwardReplies parses the server's messages and forwards them one by one.
func (p *Proxy) forwardReplies(l *link) {
	if p.raw {
		p.forward(l.client, l.server)
		return
	}
	server := pgproto3.NewFrontend(l.server, io.Discard)
	var out []byte
	for {
		message, err := server.Receive()
		if err != nil {
			return
		}
		if complete, is := message.(*pgproto3.CommandComplete); is && string(complete.CommandTag) == "COMMIT" && p.loses() {
			return
		}
		if out, err = message.Encode(out); err != nil {
			return
		}
		if server.ReadBufferLen() > 0 && len(out) < 32<<10 {
			continue
		}
		p.delay(len(out))
		if _, err := l.client.Write(out); err != nil {
			return
		}
		out = out[:0]
	}
}

func (p *Proxy) loses() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lose == nil || !p.lose() {
		return false
	}
	p.dropped.Add(1)
	return true
}

// delay waits for the time that n bytes take on the line.
func (p *Proxy) delay(n int) {
	p.mu.Lock()
	way := p.line
	p.mu.Unlock()
	wait := way.latency
	if way.bytesPerSecond > 0 {
		wait += time.Duration(n) * time.Second / time.Duration(way.bytesPerSecond)
	}
	if wait == 0 {
		return
	}
	p.delayed.Add(1)
	<-time.After(wait)
}
