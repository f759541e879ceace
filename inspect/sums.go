package inspect

// Add adds the counts of u.
func (t *Traffic) Add(u *Traffic) {
	t.TxPackets += u.TxPackets
	t.RxPackets += u.RxPackets
	t.Segments += u.Segments
	t.Bytes += u.Bytes
	t.Resent += u.Resent
	t.Lost += u.Lost
	t.Timeouts += u.Timeouts
	t.TailProbes += u.TailProbes
	t.Needless += u.Needless
	t.Delivered += u.Delivered
	t.Reordered += u.Reordered
	t.Duplicates += u.Duplicates
	t.OutsideWindow += u.OutsideWindow
}

// Add adds the counts of u.
func (w *Work) Add(u *Work) {
	w.SendsPosted += u.SendsPosted
	w.RecvsPosted += u.RecvsPosted
	w.MessagesSent += u.MessagesSent
	w.MessagesRecv += u.MessagesRecv
	w.BytesSent += u.BytesSent
	w.BytesRecv += u.BytesRecv
	w.FallbackJobs += u.FallbackJobs
}

// AllWork is the work of every queue pair there is and was. Of a restricted
// snapshot it is that of the queue pairs seen.
func (s *Snapshot) AllWork() (w Work) {
	if s.Totals != nil {
		w = s.Totals.QP
	}
	for i := range s.QPs {
		w.Add(&s.QPs[i].Work)
	}
	return w
}

// AllTraffic is the traffic of every connection there is and was, by port in
// the order of Ports.
func (s *Snapshot) AllTraffic() []Traffic {
	out := make([]Traffic, len(s.Ports))
	at := map[string]*Traffic{}
	for i := range s.Ports {
		if s.Totals != nil && i < len(s.Totals.Traffic) {
			out[i] = s.Totals.Traffic[i]
		}
		at[s.Ports[i].Name] = &out[i]
	}
	for i := range s.QPs {
		if q := &s.QPs[i]; q.Wire != nil && at[q.Device] != nil {
			at[q.Device].Add(&q.Wire.Traffic)
		}
	}
	return out
}
