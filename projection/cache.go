package projection

import "hash/maphash"

// cache remembers accounts in two turns: those touched since the last turn and
// those touched in the one before, which the next turn drops. It approximates
// least-recently-used without a list.
type cache struct {
	hot, cold *table
}

func newCache() cache {
	seed := maphash.MakeSeed()
	return cache{hot: newTable(seed), cold: newTable(seed)}
}

func (c *cache) hash(id string) uint64 { return c.hot.hash(id) }

// get finds an account that is known, or answers nil.
func (c *cache) get(id string, hash uint64) *account {
	if a := c.hot.get(id, hash); a != nil {
		return a
	}
	old := c.cold.get(id, hash)
	if old == nil || old.held || old.unread { // what the database holds of it is learnt afresh
		return nil
	}
	a := c.hot.add(id, hash)
	c.hot.set(a, c.cold.state(old))
	a.base, a.exists = old.base, old.exists
	c.cold.drop(old)
	return a
}

// turn makes what is hot cold and drops what was cold. Nothing may be pending.
func (c *cache) turn() {
	c.hot, c.cold = newTable(c.hot.seed), c.hot
}
