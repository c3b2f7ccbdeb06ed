package projection

// cache remembers accounts in two turns: those touched since the last turn and
// those touched in the one before, which the next turn drops. It approximates
// least-recently-used without a list.
type cache struct {
	hot, cold map[string]*account
	bytes     int // of hot
}

func newCache() cache {
	return cache{hot: map[string]*account{}}
}

func (c *cache) get(id string) *account {
	if a := c.hot[id]; a != nil {
		return a
	}
	a := c.cold[id]
	if a != nil {
		delete(c.cold, id)
		c.put(a)
	}
	return a
}

func (c *cache) put(a *account) {
	c.hot[a.ID] = a
	c.bytes += accountBytes + len(a.ID) + len(a.State.LastEventID)
}

func (c *cache) drop(id string) {
	delete(c.hot, id)
	delete(c.cold, id)
}

func (c *cache) turn() {
	c.hot, c.cold, c.bytes = make(map[string]*account, len(c.hot)), c.hot, 0
}
