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

// noLimit is above any real memory size. Control groups version 1 report such a large number if there
// is no limit.
const noLimit = 1 << 60

// containerLimit returns the memory limit of this process in bytes. This is the lowest limit of its
// control group and all parent groups. The result is 0 if there is no limit or no limit can be
// read. The argument root is the root of the file system.
func containerLimit(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil { // not Linux
		return 0
	}
	var least int64
	for lines := bufio.NewScanner(bytes.NewReader(groups)); lines.Scan(); {
		// A line is "0::/a/b" in version 2 of control groups, and "4:memory:/a/b" in version 1.
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
		// In a container the path may be a path of the host that does not exist here. The root group
		// always exists, so parents are tried too.
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

// limitIn returns the limit in a file, or 0 if there is none.
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
