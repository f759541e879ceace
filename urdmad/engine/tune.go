package engine

// SetDeathTimeout changes how long new connections wait for a silent peer;
// those that exist keep theirs. On the worker's thread.
func (e *Engine) SetDeathTimeout(t Time) { e.cfg.DeathTimeout = t }

// QueuePairs is how many there are. On the worker's thread.
func (e *Engine) QueuePairs() int { return len(e.qps) }
