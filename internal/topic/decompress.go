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
// records after it in its partition.
const MaxBatchBytes = 64 << 20

// bounded returns a decompressor for batches up to MaxBatchBytes. Only a kgo.Client has a
// decompressor with a limit. The client that is made here never connects.
var bounded = sync.OnceValues(func() (kgo.Decompressor, error) {
	client, err := kgo.NewClient(kgo.MaxDecompressBatchBytes(MaxBatchBytes))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	decompressor, is := client.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
	if !is {
		return nil, errors.New("the Kafka client has no decompressor")
	}
	return decompressor, nil
})

// batchTooLarge returns the error about a batch in Kafka that is larger than MaxBatchBytes.
func batchTooLarge(first, last int64) error {
	return errclass.Text(fmt.Sprintf("the batch of records from offset %d to %d is larger than %d MiB when it is decompressed, so it is not read",
		first, last, MaxBatchBytes>>20))
}
