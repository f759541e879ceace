package report

import (
	"slices"
	"strings"

	"urdma/inspect"
)

// Filter selects objects; zero fields select all.
type Filter struct {
	PID  int
	Port string // a port, or a device, with all its ports
	QPN  uint32
}

// at reports whether a port, or an object for all ports of a device, belongs to the port wanted.
func (f *Filter) at(name string) bool {
	device, _, _ := strings.Cut(f.Port, "/")
	return f.Port == "" || name == f.Port || name == device || strings.HasPrefix(name, f.Port+"/")
}

// Apply returns a snapshot with the objects of the process, the port and the queue pair: the objects that the queue
// pair uses and those that use it.
func (f *Filter) Apply(s *inspect.Snapshot) *inspect.Snapshot {
	out := *s
	pair := func(q *inspect.QP) bool { return f.QPN == 0 || q.QPN == f.QPN }
	var used []inspect.QP
	for _, q := range s.QPs {
		if pair(&q) {
			used = append(used, q)
		}
	}
	uses := func(match func(q *inspect.QP) bool) bool {
		return f.QPN == 0 || slices.ContainsFunc(used, func(q inspect.QP) bool { return match(&q) })
	}
	owned := func(o *inspect.Object) bool {
		return (f.PID == 0 || o.PID == f.PID) && f.at(o.Device)
	}
	out.Ports = keep(s.Ports, func(p *inspect.Port) bool {
		return f.at(p.Name) && uses(func(q *inspect.QP) bool { return q.Device == p.Name })
	})
	out.Clients = keep(s.Clients, func(c *inspect.Client) bool {
		return (f.PID == 0 || c.PID == f.PID) && uses(func(q *inspect.QP) bool { return q.Client == c.ID })
	})
	out.Domains = keep(s.Domains, func(d *inspect.Domain) bool {
		return owned(&d.Object) && uses(func(q *inspect.QP) bool { return q.Domain == d.Number })
	})
	out.Regions = keep(s.Regions, func(r *inspect.Region) bool {
		return owned(&r.Object) && uses(func(q *inspect.QP) bool { return q.Domain == r.Domain })
	})
	out.CQs = keep(s.CQs, func(c *inspect.CQ) bool {
		return owned(&c.Object) && uses(func(q *inspect.QP) bool {
			return q.Client == c.Client && (q.SendCQ == c.Handle || q.RecvCQ == c.Handle)
		})
	})
	out.Windows = keep(s.Windows, func(w *inspect.Window) bool {
		return owned(&w.Object) && (f.QPN == 0 || w.QPN == f.QPN)
	})
	out.SRQs = keep(s.SRQs, func(r *inspect.SRQ) bool { return f.QPN == 0 && owned(&r.Object) })
	out.QPs = keep(s.QPs, func(q *inspect.QP) bool { return owned(&q.Object) && pair(q) })
	out.Connections = keep(s.Connections, func(c *inspect.Connection) bool {
		return owned(&c.Object) && (f.QPN == 0 || c.QPN == f.QPN)
	})
	out.Listeners = keep(s.Listeners, func(l *inspect.Listener) bool {
		everywhere := l.Device == "" && (f.PID == 0 || l.PID == f.PID)
		return f.QPN == 0 && (everywhere || owned(&l.Object))
	})
	out.Limits = keep(s.Limits, func(l *inspect.Limit) bool { return f.PID == 0 || l.PID == f.PID })
	out.Neighbours = keep(s.Neighbours, func(n *inspect.Neighbour) bool { return f.at(n.Port) })
	out.Groups = keep(s.Groups, func(g *inspect.Group) bool { return f.at(g.Port) })
	out.Injections = keep(s.Injections, func(i *inspect.Injection) bool {
		return f.QPN == 0 && f.Port == "" && (f.PID == 0 || i.PID == f.PID)
	})
	out.Warnings = keep(s.Warnings, func(w *inspect.Warning) bool {
		return f.Port == "" && (f.PID == 0 || w.PID == f.PID) && (f.QPN == 0 || w.QPN == f.QPN)
	})
	return &out
}

// keep never returns nil: JSON shows an empty list.
func keep[T any](list []T, wanted func(*T) bool) []T {
	out := []T{}
	for i := range list {
		if wanted(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}
