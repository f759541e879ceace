package inspect

import "urdma/counters"

var (
	sumTraffic = counters.NewSum[Traffic]("json")
	sumWork    = counters.NewSum[Work]("json")
)

// Add adds the counts of u to t.
func (t *Traffic) Add(u *Traffic) { sumTraffic.Into(t, u) }

// Add adds the counts of u to w.
func (w *Work) Add(u *Work) { sumWork.Into(w, u) }

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
