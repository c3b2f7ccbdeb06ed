package change

import (
	"cmp"
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
	err     error // of a document that cannot be encoded
}

// hashOf returns the hash of a plan. action is the name of the change in the audit trail.
func hashOf(ctx context.Context, action readmodel.ActionKind, plan Plan) (*Hash, error) {
	h := &Hash{sum: sha256.New()}
	h.encoder = json.NewEncoder(h.sum)
	_, _ = io.WriteString(h.sum, string(action)+"\n")
	err := plan.Hash(ctx, h)
	return h, cmp.Or(err, h.err)
}

// Add counts a record that would be changed. It adds documents about the record that must not
// change until the plan is approved, usually the output without --yes.
func (h *Hash) Add(documents ...any) {
	h.records++
	h.Note(documents...)
}

// Note adds other documents that must not change. They do not count as records.
func (h *Hash) Note(documents ...any) {
	for _, d := range documents {
		h.err = cmp.Or(h.err, h.encoder.Encode(d))
	}
}

// Count sets the number of records if they are not added one by one.
func (h *Hash) Count(records int64) { h.records = records }

func (h *Hash) sha256() string { return hex.EncodeToString(h.sum.Sum(nil)) }
