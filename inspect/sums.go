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

// Add adds another worker's counts to l. The longest gap is the longer of the two.
func (l *Loop) Add(o *Loop) {
	gap := max(l.LongestGapNs, o.LongestGapNs)
	sumLoop.Into(l, o)
	l.LongestGapNs = gap
}

// AllWorkers are the workers of a urdmad, even a single one; none for a restricted snapshot.
func (s *Snapshot) AllWorkers() []Worker {
	if len(s.Workers) == 0 && s.Loop != nil {
		return []Worker{{Loop: *s.Loop, Clients: len(s.Clients), QPs: len(s.QPs)}}
	}
	return s.Workers
}

// AddTerminates adds the counts of more to the entries of list with the same cause.
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

// AllWork is the work of all present and past queue pairs. A restricted snapshot has only the visible queue pairs.
func (s *Snapshot) AllWork() (w Work) {
	if s.Totals != nil {
		w = s.Totals.QP
	}
	for i := range s.QPs {
		w.Add(&s.QPs[i].Work)
	}
	return w
}

// AllTraffic is the traffic of all present and past connections, by port in the order of Ports.
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
