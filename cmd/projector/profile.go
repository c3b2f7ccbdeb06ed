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

// A program that was built with the tag profile writes a CPU profile until the program is stopped.
// The variable PROJECTOR_PROFILES names the folder of the file. `make bench-profile` uses such a
// program.
func init() { //nolint:gochecknoinits // only in a program that a developer profiles
	name := filepath.Join(os.Getenv("PROJECTOR_PROFILES"), strconv.Itoa(os.Getpid())+".pprof")
	file, err := os.Create(name) //nolint:gosec // G304: the developer names the folder
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
