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

// Hash is the digest of everything in a plan that must not change between the request and its approval.
type Hash struct {
	sum     hash.Hash
	encoder *json.Encoder
	records int64
}

// hashOf returns the hash of a plan. action is the name of the change in the audit trail.
func hashOf(ctx context.Context, action readmodel.ActionKind, plan Plan) (*Hash, error) {
	h := &Hash{sum: sha256.New()}
	h.encoder = json.NewEncoder(h.sum)
	_, _ = io.WriteString(h.sum, string(action)+"\n")
	return h, plan.Hash(ctx, h)
}

// Add counts a record that would be changed. It adds documents about the record that must not
// change until the plan is approved, usually the output without --yes.
func (h *Hash) Add(documents ...any) error {
	h.records++
	return h.Note(documents...)
}

// Note adds other documents that must not change. They do not count as records.
func (h *Hash) Note(documents ...any) error {
	for _, d := range documents {
		if err := h.encoder.Encode(d); err != nil {
			return err
		}
	}
	return nil
}

// Count sets the number of records if they are not added one by one.
func (h *Hash) Count(records int64) { h.records = records }

func (h *Hash) sha256() string { return hex.EncodeToString(h.sum.Sum(nil)) }
