package stream

import "math/rand/v2"

// Break changes a few bytes of a record, anywhere.
func Break(rnd *rand.Rand, r *Record) {
	r.Value = broken(rnd, r.Value)
	switch rnd.IntN(6) {
	case 0:
		r.Key = broken(rnd, r.Key)
	case 1:
		r.Headers = append(r.Headers, Header{
			Key: string(broken(rnd, []byte("__projector.errors.replays"))), Value: broken(rnd, []byte("1")),
		})
	}
}

func broken(rnd *rand.Rand, original []byte) []byte {
	if len(original) == 0 {
		return []byte{byte(rnd.Uint32())}
	}
	b := append([]byte(nil), original...)
	for range 1 + rnd.IntN(3) {
		at := rnd.IntN(len(b))
		to := at + rnd.IntN(len(b)-at)
		switch rnd.IntN(6) {
		case 0:
			b[at] = byte(rnd.Uint32())
		case 1:
			b[at] ^= 1 << rnd.IntN(8)
		case 2:
			b = append(b[:at:at], b[to:]...)
		case 3:
			b = append(b[:to:to], b[at:]...)
		case 4:
			b[at] = `{}[]":,\u0x9-+eE.`[rnd.IntN(17)]
		default:
			b[at], b[to] = b[to], b[at]
		}
		if len(b) == 0 {
			return b
		}
	}
	return b
}
