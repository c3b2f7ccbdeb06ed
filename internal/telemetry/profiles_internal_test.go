package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// logged is a log whose lines a test can wait for.
type logged struct {
	lines chan map[string]any
}

func (l logged) Write(p []byte) (int, error) {
	line := map[string]any{}
	err := json.NewDecoder(bytes.NewReader(p)).Decode(&line)
	l.lines <- line
	return len(p), err
}

func profilesLog() (logged, *slog.Logger) {
	l := logged{make(chan map[string]any, 10)}
	return l, slog.New(slog.NewJSONHandler(l, nil))
}

// TestProfilesAreServedOnLoopbackAfterASignal shows that other machines cannot reach the profiles.
func TestProfilesAreServedOnLoopbackAfterASignal(t *testing.T) {
	lines, log := profilesLog()
	asked := make(chan os.Signal)
	ctx, stop := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { ServeProfiles(ctx, asked, log) })
	asked <- syscall.SIGUSR1
	address, _ := (<-lines.lines)["address"].(string)
	host, port, err := net.SplitHostPort(address)
	if err != nil || !net.ParseIP(host).IsLoopback() {
		t.Fatalf("serving on %q, which is not loopback", address)
	}
	for path, want := range map[string]int{
		"profile?seconds=1": http.StatusOK, "heap": http.StatusOK, "goroutine?debug=2": http.StatusOK,
		"cmdline": http.StatusNotFound, "profile?seconds=3600": http.StatusBadRequest,
	} {
		if status, body := profile(t, address, path); status != want || status == http.StatusOK && !bytes.HasPrefix(body, []byte{0x1f, 0x8b}) {
			t.Errorf("%s: status %d, %d bytes", path, status, len(body))
		}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip, _ := a.(*net.IPNet); ip != nil && !ip.IP.IsLoopback() {
			if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", net.JoinHostPort(ip.IP.String(), port)); err == nil {
				_ = conn.Close()
				t.Errorf("reached by %s", ip.IP)
			}
		}
	}
	stop()
	serving.Wait()
	if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address); err == nil {
		_ = conn.Close()
		t.Error("profiles are served after the end")
	}
}

func TestProfilesAreServedForATime(t *testing.T) {
	lines, log := profilesLog()
	serveProfiles(t.Context(), time.Millisecond, log) // this call must return
	<-lines.lines
	if line := <-lines.lines; line["msg"] != "no longer serving profiles" {
		t.Error(line)
	}
}

func profile(t *testing.T, address, path string) (int, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/debug/pprof/"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, body
}
