package qp

// Fill says how full a queue pair is.
type Fill struct {
	SendDepth, SendFill int    // slots, and those posted and not completed
	RecvDepth, RecvFill int    // slots, and those posted and not completed
	ReadsOut, ReadsIn   int    // Reads under way: asked for by us, by the peer
	FallbackWaiting     uint64 // writes on the fallback path that have not ended
}

// Fill returns how full the queue pair is. Posts that were not fetched yet
// count as well.
func (q *QP) Fill() Fill {
	f := Fill{SendDepth: q.SQ.Slots(), SendFill: q.SQ.Posted(), RecvDepth: q.RQ.Slots(), RecvFill: q.RQ.Posted(),
		ReadsOut: q.SQ.reads, FallbackWaiting: q.jobs.issued - q.jobs.done}
	if q.carrier != nil {
		f.ReadsIn = q.carrier.Serving()
	}
	return f
}
