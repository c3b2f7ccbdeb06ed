package topic

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
	"projector/internal/devstack/devtest"
)

// TestReaderRefusesALargeBatch shows that a batch is refused if it has few KiB but would need
// hundreds of MiB when it is decompressed.
func TestReaderRefusesALargeBatch(t *testing.T) {
	cluster := newCluster(t, kfake.SeedTopics(1, testTopic))
	for name, codec := range map[string]kgo.CompressionCodec{
		"zstd": kgo.ZstdCompression(), "gzip": kgo.GzipCompression(), "lz4": kgo.Lz4Compression(),
	} {
		client := devtest.Client(t, cluster.ListenAddrs(), kgo.ProducerBatchCompression(codec), kgo.ProducerBatchMaxBytes(200<<20), kgo.BrokerMaxWriteBytes(300<<20))
		if err := client.ProduceSync(soon(t), &kgo.Record{Topic: testTopic, Value: make([]byte, 70<<20)}).FirstErr(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	r := NewReader(devtest.Client(t, cluster.ListenAddrs()), testTopic)
	if record, err := r.Accept(71<<20).ReadAt(soon(t), 0, 0); err != nil || len(record.Value) != 70<<20 {
		t.Errorf("of a reader that accepts larger batches: %v", err)
	}
	for offset := range int64(3) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := r.ReadAt(soon(t), 0, offset)
		runtime.ReadMemStats(&after)
		large := fmt.Sprintf("from offset %d to %d is larger than 64 MiB", offset, offset)
		if !strings.Contains(errclass.Safe(err), large) {
			t.Errorf("offset %d: %v", offset, err)
		}
		// 1024 MiB is much more than the limit of 64 MiB, because a buffer doubles until it reaches
		// the limit, and other tests allocate memory meanwhile.
		if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 1024 {
			t.Errorf("offset %d: %d MiB allocated", offset, n)
		}
	}
}
