package verbs

// WhileNobodyPolls runs f while it holds the queue's lock.
func (q *CQ) WhileNobodyPolls(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f()
}

// Waiters returns how many goroutines sleep in Wait, or are about to.
func (q *CQ) Waiters() int { return int(q.waiters.Load()) }
