package roce

// Len is how many connections are known, those of rdma_cm that have ended too.
func (s *Stack) Len() int { return len(s.ids) + len(s.asked) + len(s.conns) + len(s.peers) }
