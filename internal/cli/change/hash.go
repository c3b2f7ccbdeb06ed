package change

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"io"

	"projector/readmodel"
)

// Hash is a plan as a second person approves it.
type Hash struct {
	sum     hash.Hash
	encoder *json.Encoder
	records int64
}

// hashOf is the hash of a plan of an action, which has the name it has in the audit trail.
func hashOf(ctx context.Context, action readmodel.ActionKind, plan Plan) (*Hash, error) {
	h := &Hash{sum: sha256.New()}
	h.encoder = json.NewEncoder(h.sum)
	_, _ = io.WriteString(h.sum, string(action)+"\n")
	return h, plan.Hash(ctx, h)
}

// Add adds a record that would be changed: what the command prints of it without --yes, and
// whatever else has to be the same when it is approved.
func (h *Hash) Add(documents ...any) error {
	h.records++
	return h.Note(documents...)
}

// Note adds what has to be the same and is no record.
func (h *Hash) Note(documents ...any) error {
	for _, d := range documents {
		if err := h.encoder.Encode(d); err != nil {
			return err
		}
	}
	return nil
}

// Count sets how many records there are, where they are not added one by one.
func (h *Hash) Count(records int64) { h.records = records }

func (h *Hash) sha256() string { return hex.EncodeToString(h.sum.Sum(nil)) }
