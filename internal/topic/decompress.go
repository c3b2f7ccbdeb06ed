package topic

import (
	"errors"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// maxBatchBytes bounds a batch of records, decompressed: it is in memory as a whole. It is
// the default of the run command.
const maxBatchBytes = 64 << 20

// bounded returns what decompresses batches up to maxBatchBytes. Only a client can make
// one with a limit; it connects to nobody.
var bounded = sync.OnceValues(func() (kgo.Decompressor, error) {
	client, err := kgo.NewClient(kgo.MaxDecompressBatchBytes(maxBatchBytes))
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

// batchTooLarge says that Kafka holds a batch of more than maxBatchBytes.
type batchTooLarge struct{ first, last int64 }

// Error implements error.
func (e batchTooLarge) Error() string {
	return fmt.Sprintf("the batch of records from offset %d to %d is larger than %d MiB when it is decompressed, so it is not read",
		e.first, e.last, maxBatchBytes>>20)
}

// SafeText implements errclass.Describer.
func (e batchTooLarge) SafeText() string { return e.Error() }
