package topic

import (
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"projector/errclass"
)

// MaxBatchBytes limits the decompressed size of a batch of records, because the whole batch is in
// memory. It equals the default of the run command. A larger batch cannot be read, and neither can the
// records after it in its partition, except by a Reader that accepts it.
const MaxBatchBytes = 64 << 20

// decompressor decompresses batches up to a number of bytes.
type decompressor struct {
	bytes int
	open  func() (kgo.Decompressor, error)
}

// bounded returns a decompressor for batches up to a number of bytes. Only a kgo.Client has a
// decompressor with a limit. The client that is made here never connects.
func bounded(bytes int) decompressor {
	return decompressor{bytes, sync.OnceValues(func() (kgo.Decompressor, error) {
		client, err := kgo.NewClient(kgo.MaxDecompressBatchBytes(bytes))
		if err != nil {
			return nil, err
		}
		defer client.Close()
		decompressor, is := client.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
		if !is {
			return nil, errors.New("the Kafka client has no decompressor")
		}
		return decompressor, nil
	})}
}

// usual is the decompressor of a Reader, unless it accepts other batches.
var usual = bounded(MaxBatchBytes)

// tooLarge returns the error about a batch in Kafka that is larger than the limit.
func (d decompressor) tooLarge(first, last int64) error {
	return errclass.Text(fmt.Sprintf("the batch of records from offset %d to %d is larger than %d MiB when it is decompressed, so it is not read",
		first, last, d.bytes>>20))
}
