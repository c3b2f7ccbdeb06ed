//go:build !linux

package pace

// CoarseTimers does nothing, because only Linux lets a program choose how late its timers may be.
func CoarseTimers() {}
