//go:build profile

package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"syscall"
)

// A program built with the tag profile writes what its processor time went into to a
// file in the folder PROJECTOR_PROFILES, until it is told to stop: see `make bench-profile`.
func init() {
	name := filepath.Join(os.Getenv("PROJECTOR_PROFILES"), strconv.Itoa(os.Getpid())+".pprof")
	file, err := os.Create(name) //nolint:gosec // G304: whoever builds with this tag names the folder
	if err == nil {
		err = pprof.StartCPUProfile(file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "no profile:", err)
		return
	}
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, syscall.SIGTERM)
	go func() {
		<-stopped
		pprof.StopCPUProfile()
		_ = file.Close()
	}()
}
