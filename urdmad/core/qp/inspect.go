package qp

// Fill is the fill level of a queue pair.
type Fill struct {
	SendDepth, SendFill int    // slots, and work requests posted but not completed
	RecvDepth, RecvFill int    // slots, and work requests posted but not completed
	ReadsOut, ReadsIn   int    // unanswered Reads: ours, and the peer's
	FallbackWaiting     uint64 // writes on the fallback path that have not ended
}

// Fill returns the fill level of the queue pair. It includes posts that have not been fetched
// yet.
func (q *QP) Fill() Fill {
	f := Fill{SendDepth: q.SQ.Slots(), SendFill: q.SQ.Posted(), RecvDepth: q.RQ.Slots(), RecvFill: q.RQ.Posted(),
		ReadsOut: q.SQ.reads, FallbackWaiting: q.jobs.issued - q.jobs.done}
	if q.carrier != nil {
		f.ReadsIn = q.carrier.Serving()
	}
	return f
}
