//go:build soak

package operators_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestSoak runs one seed after another for the time in PROJECTOR_SOAK. The first seed is random, or
// PROJECTOR_TEST_SEED.
func TestSoak(t *testing.T) {
	until := time.Now().Add(must(time.ParseDuration(os.Getenv("PROJECTOR_SOAK")))(t))
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("PROJECTOR_TEST_SEED"); text != "" {
		seed = must(strconv.ParseUint(text, 10, 64))(t)
	}
	for ; !t.Failed() && time.Now().Before(until); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			s := newStage(t, seed)
			s.play(40)
			t.Logf("seed %d: done/refused: %s", seed, s.report())
		})
	}
}
