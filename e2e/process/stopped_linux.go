package process

import (
	"bytes"
	"fmt"
	"os"
)

// The function stopped reports whether SIGSTOP has reached the process.
func stopped(pid int) (bool, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false, err
	}
	_, state, _ := bytes.Cut(text, []byte(") ")) // the state follows the name of the program
	return bytes.HasPrefix(state, []byte("T")), nil
}
