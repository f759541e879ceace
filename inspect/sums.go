package inspect

import (
	"slices"

	"urdma/counters"
)

var (
	sumTraffic = counters.NewSum[Traffic]("json")
	sumWork    = counters.NewSum[Work]("json")
	sumLoop    = counters.NewSum[Loop]("json")
)

// Add adds another worker's to l: the longest gap is that of the two.
func (l *Loop) Add(o *Loop) {
	gap := max(l.LongestGapNs, o.LongestGapNs)
	sumLoop.Into(l, o)
	l.LongestGapNs = gap
}

// AllWorkers are the workers of an urdmad, also where there is one; of a restricted snapshot
// none.
func (s *Snapshot) AllWorkers() []Worker {
	if len(s.Workers) == 0 && s.Loop != nil {
		return []Worker{{Loop: *s.Loop, Clients: len(s.Clients), QPs: len(s.QPs)}}
	}
	return s.Workers
}

// AddTerminates adds the counts of more to those of list with the same cause.
func AddTerminates(list, more []Terminate) []Terminate {
	for _, t := range more {
		same := func(o Terminate) bool { return o.Layer == t.Layer && o.Type == t.Type && o.Code == t.Code }
		if at := slices.IndexFunc(list, same); at >= 0 {
			list[at].Count += t.Count
		} else {
			list = append(list, t)
		}
	}
	return list
}

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
