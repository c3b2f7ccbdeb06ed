package appended

// Held returns the approximate memory in use, in bytes.
func (c *Recent) Held() int { return (len(c.hot.marked) + len(c.cold.marked)) * seenBytes }
