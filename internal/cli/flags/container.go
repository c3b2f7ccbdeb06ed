package flags

import (
	"bufio"
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// noLimit is what version 1 of control groups has where there is no limit, rounded down to
// pages; nobody has as much memory.
const noLimit = 1 << 60

// containerLimit is the memory that the kernel allows this process, by its control group
// and all groups above that; 0: no limit, or none that can be read. root is the file
// system's root.
func containerLimit(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil { // not Linux
		return 0
	}
	var least int64
	for lines := bufio.NewScanner(bytes.NewReader(groups)); lines.Scan(); {
		// "0::/a/b" in version 2, "4:memory:/a/b" in version 1
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) < 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		if controllers := strings.Split(parts[1], ","); slices.Contains(controllers, "memory") {
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if parts[1] != "" {
			continue
		}
		// In a container the path may be the host's, which is not there; its root always is.
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			if n := limitIn(root, path.Join(mount, group, file)); n > 0 && (least == 0 || n < least) {
				least = n
			}
			if group == "/" {
				break
			}
		}
	}
	return least
}

// limitIn is the limit in a file; 0: none.
func limitIn(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" is no number
	if err != nil || n >= noLimit {
		return 0
	}
	return n
}
