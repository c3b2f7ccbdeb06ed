package recent

// Held returns the approximate memory in use, in bytes.
func (c *Cache) Held() int { return (len(c.hot.marked) + len(c.cold.marked)) * entryBytes }
