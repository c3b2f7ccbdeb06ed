package httplimit

import (
	"context"
	"errors"
	"net"
	"net/http"
)

// Server is an HTTP server that serves in the background and limits its connections.
type Server struct {
	HTTP     *http.Server
	ended    func(error)
	listener net.Listener
	served   chan struct{} // closed when the serving goroutine has ended
}

// NewServer makes a server that listens on the address of s (host:port; port 0 means a free port).
// The function ended is called if the server ends before Shutdown is called.
func NewServer(s *http.Server, limit *Connections, ended func(error)) *Server {
	s.ConnState = limit.State
	return &Server{HTTP: s, ended: ended, served: make(chan struct{})}
}

// Start listens and serves in the background. It returns an error if it cannot listen on the
// address. Start must be called only one time.
func (s *Server) Start(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.HTTP.Addr)
	if err != nil {
		return err
	}
	s.listener = listener
	go func() {
		defer close(s.served)
		if err := s.HTTP.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.ended(err)
		}
	}()
	return nil
}

// Addr returns the address that the server listens on, for example "127.0.0.1:43121". Before Start
// it returns the configured address.
func (s *Server) Addr() string {
	if s.listener == nil {
		return s.HTTP.Addr
	}
	return s.listener.Addr().String()
}

// Shutdown stops listening and waits for running requests until ctx ends. Then it closes their
// connections. Shutdown does nothing if Start was not called.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.listener == nil {
		return nil
	}
	err := s.HTTP.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.HTTP.Close())
	}
	<-s.served
	return err
}
