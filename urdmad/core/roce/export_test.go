package roce

// Len returns the number of known connections, including ended ones of rdma_cm.
func (s *Stack) Len() int { return len(s.ids) + len(s.asked) + len(s.conns) + len(s.peers) }
