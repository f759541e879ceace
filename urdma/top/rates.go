package top

import (
	"cmp"
	"slices"

	"urdma/inspect"
)

// portRate is a port's activity per second.
type portRate struct {
	*inspect.Port
	rxBytes, txBytes, rxPackets, txPackets float64
	resent, dropped                        float64
}

// pairRate is a queue pair's activity per second.
type pairRate struct {
	*inspect.QP
	out, in, messages, resent float64
}

// rates are the differences between two snapshots.
type rates struct {
	ports   []portRate
	pairs   []pairRate
	loop    *loopRate    // nil: unknown
	workers []workerRate // if there are several
}

// loopRate is a poll loop's activity: busy is a part of the turns, asleep a part of the time.
type loopRate struct{ busy, asleep float64 }

// workerRate is the activity of one of several workers per second.
type workerRate struct {
	*inspect.Worker
	loopRate
	received, handedOn float64 // packets
}

// Order is the sort order of queue pairs.
type Order string

// The orders.
const (
	ByBytes    Order = "bytes"
	ByMessages Order = "messages"
	ByResent   Order = "resent"
)

func (o Order) of(p *pairRate) float64 {
	switch o {
	case ByMessages:
		return p.messages
	case ByResent:
		return p.resent
	}
	return p.out + p.in
}

// compare returns the rates between last and now. New objects count from 0; removed ones are left out.
func compare(last, now *inspect.Snapshot, order Order) rates {
	var r rates
	seconds := now.Taken.Sub(last.Taken).Seconds()
	if seconds <= 0 {
		seconds = 1
	}
	per := func(now, last uint64) float64 {
		if now < last {
			return 0 // another urdmad, or an object of the sum was just removed
		}
		return float64(now-last) / seconds
	}
	r.comparePorts(last, now, per)
	r.comparePairs(last, now, per)
	slices.SortStableFunc(r.pairs, func(a, b pairRate) int { return cmp.Compare(order.of(&b), order.of(&a)) })
	r.compareLoops(last, now, per)
	return r
}

func (r *rates) compareLoops(last, now *inspect.Snapshot, per func(now, last uint64) float64) {
	loops := func(l, m *inspect.Loop, n int) *loopRate {
		if l == nil || m == nil || l.Turns < m.Turns || l.AsleepNs < m.AsleepNs {
			return nil
		}
		return &loopRate{asleep: min(per(l.AsleepNs, m.AsleepNs)/1e9/float64(n), 1),
			busy: float64(l.BusyTurns-m.BusyTurns) / float64(max(l.Turns-m.Turns, 1))}
	}
	if r.loop = loops(now.Loop, last.Loop, max(len(now.Workers), 1)); len(now.Workers) != len(last.Workers) {
		return
	}
	for i := range now.Workers {
		w, before := &now.Workers[i], &last.Workers[i]
		if l := loops(&w.Loop, &before.Loop, 1); l != nil {
			r.workers = append(r.workers, workerRate{w, *l, per(w.Received, before.Received), per(w.HandedOn, before.HandedOn)})
		}
	}
}

func (r *rates) comparePorts(last, now *inspect.Snapshot, per func(now, last uint64) float64) {
	traffic, before := now.AllTraffic(), last.AllTraffic()
	for i := range now.Ports {
		p := &now.Ports[i]
		var q inspect.Port
		var t inspect.Traffic
		if i < len(last.Ports) && last.Ports[i].Name == p.Name {
			q, t = last.Ports[i], before[i]
		}
		r.ports = append(r.ports, portRate{Port: p,
			rxBytes: per(p.RxBytes, q.RxBytes), txBytes: per(p.TxBytes, q.TxBytes),
			rxPackets: per(p.RxPackets, q.RxPackets), txPackets: per(p.TxPackets, q.TxPackets),
			resent:  per(traffic[i].Resent, t.Resent),
			dropped: per(p.RxDropped+p.TxDropped+p.RxErrors+p.NoBuffer, q.RxDropped+q.TxDropped+q.RxErrors+q.NoBuffer)})
	}
}

func (r *rates) comparePairs(last, now *inspect.Snapshot, per func(now, last uint64) float64) {
	type key struct {
		client uint64
		handle uint32
	}
	before := map[key]*inspect.QP{}
	for i := range last.QPs {
		q := &last.QPs[i]
		before[key{q.Client, q.Handle}] = q
	}
	for i := range now.QPs {
		q := &now.QPs[i]
		p := before[key{q.Client, q.Handle}]
		if p == nil || p.QPN != q.QPN {
			p = &inspect.QP{}
		}
		rate := pairRate{QP: q, out: per(q.BytesSent, p.BytesSent), in: per(q.BytesRecv, p.BytesRecv),
			messages: per(q.MessagesSent+q.MessagesRecv, p.MessagesSent+p.MessagesRecv)}
		if q.Wire != nil {
			var resent uint64
			if p.Wire != nil {
				resent = p.Wire.Resent
			}
			rate.resent = per(q.Wire.Resent, resent)
		}
		r.pairs = append(r.pairs, rate)
	}
}
