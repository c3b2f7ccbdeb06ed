package flags

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestTheLimitFollowsTheContainer(t *testing.T) {
	const mib Size = 1 << 20
	files := func(pairs ...string) fstest.MapFS {
		root := fstest.MapFS{}
		for pair := range slices.Chunk(pairs, 2) {
			root[pair[0]] = &fstest.MapFile{Data: []byte(pair[1])}
		}
		return root
	}
	tests := map[string]struct {
		root fstest.MapFS
		want Size
	}{
		"no Linux": {files(), 512 * mib},
		"no limit": {files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "max\n"), 512 * mib},
		"version 2, in a container": {
			files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "1073741824\n"), 768 * mib,
		},
		"version 2, a unit in a slice with less": {
			files("proc/self/cgroup", "0::/bank.slice/projector.service\n",
				"sys/fs/cgroup/bank.slice/projector.service/memory.max", "2147483648\n",
				"sys/fs/cgroup/bank.slice/memory.max", "1073741824\n"), 768 * mib,
		},
		"version 1, with the host's path": {
			files("proc/self/cgroup", "9:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/\n",
				"sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n"), 384 * mib,
		},
		"version 1, no limit": {
			files("proc/self/cgroup", "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"), 512 * mib,
		},
		"less than is needed": {
			files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/memory.max", "67108864\n"), leastMemory,
		},
	}
	for name, test := range tests {
		if got := limitWithin(containerLimit(test.root)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestAGivenLimitCounts(t *testing.T) {
	given := Size(200 << 20)
	f := LimitFlags{MemoryLimit: &given}
	if f.Resident() != given || f.CheckLimit() != nil {
		t.Errorf("%s, %v", f.Resident(), f.CheckLimit())
	}
	given = 0
	if f.CheckLimit() == nil {
		t.Error("0 is taken for a limit")
	}
}
