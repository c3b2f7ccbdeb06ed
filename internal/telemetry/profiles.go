package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/pprof"
	"strconv"
	"time"
)

const (
	// profilesFor is how long profiles are served after the signal.
	profilesFor = 10 * time.Minute
	// profilesAddr is a free port on loopback. A profile contains names of functions, and making a
	// profile costs processor time. So only people who can log in to the machine or the pod may get
	// a profile.
	profilesAddr = "127.0.0.1:0"
	// mostSeconds limits the duration of a CPU profile.
	mostSeconds = 120
)

// ServeProfiles waits for signals until ctx ends. After a signal, it serves profiles of this
// process on loopback for 10 minutes. A signal during these 10 minutes has no effect. The address
// of the profiles is in the log.
func ServeProfiles(ctx context.Context, asked <-chan os.Signal, log *slog.Logger) {
	for {
		select {
		case <-asked:
			serveProfiles(ctx, profilesFor, log)
			select {
			case <-asked: // drop a signal that came while profiles were served
			default:
			}
		case <-ctx.Done():
			return
		}
	}
}

func serveProfiles(ctx context.Context, within time.Duration, log *slog.Logger) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", profilesAddr)
	if err != nil {
		log.Warn("cannot serve profiles", Err(err))
		return
	}
	log.Info("serving profiles", slog.String("address", listener.Addr().String()), slog.Duration("for", within))
	server := &http.Server{
		Handler:           secureHeaders(profileRoutes()),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	ended := time.AfterFunc(within, func() { _ = server.Close() })
	defer ended.Stop()
	forget := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer forget()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		log.Warn("the server of profiles has ended", Err(err))
		return
	}
	log.Info("no longer serving profiles")
}

// profileRoutes has the paths that `go tool pprof` uses. There is no path for the command line,
// because it may contain a password.
func profileRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/profile", cpuProfile)
	mux.HandleFunc("GET /debug/pprof/{name}", func(w http.ResponseWriter, r *http.Request) {
		profile := pprof.Lookup(r.PathValue("name"))
		if profile == nil {
			http.Error(w, "unknown profile: there are profile, heap, allocs, goroutine, block, mutex and threadcreate", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_ = profile.WriteTo(w, 0)
	})
	return mux
}

// cpuProfile returns a CPU profile of the next seconds, for example with ?seconds=30.
func cpuProfile(w http.ResponseWriter, r *http.Request) {
	seconds := 30
	if text := r.FormValue("seconds"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostSeconds {
			http.Error(w, "seconds: must be a number from 1 to "+strconv.Itoa(mostSeconds), http.StatusBadRequest)
			return
		}
		seconds = n
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	if err := pprof.StartCPUProfile(w); err != nil {
		http.Error(w, "another CPU profile is being made", http.StatusConflict)
		return
	}
	defer pprof.StopCPUProfile()
	timer := time.NewTimer(time.Duration(seconds) * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
}
