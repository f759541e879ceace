// Package places bounds what unauthenticated peers can make urdmad keep: connections without a request, and
// requests that wait for a listener. If all places are taken, a new one replaces the oldest place of the
// source address that has most places. So no source can keep others out by waiting, and a source that takes
// many places loses its own.
//
// The package knows neither what waits nor the time.
package places

import (
	"container/heap"
	"container/list"
	"net/netip"

	"urdma/urdmad/core/due"
)

// Places are the places of one kind.
type Places struct {
	most    int
	taken   int
	number  int64 // number of the newest place
	sources map[netip.Prefix]*source
	order   due.Heap[*source] // the source that loses a place next is first
}

// source is a source address with its places.
type source struct {
	prefix netip.Prefix
	places list.List // of *Place, the oldest first
	index  int       // index in Places.order
}

// Due implements due.Entry: a source with more places, or with an older oldest place, is due sooner.
func (s *source) Due() int64 {
	return s.places.Front().Value.(*Place).number - int64(s.places.Len())<<40
}

// Stands implements due.Entry.
func (s *source) Stands(i int) { s.index = i }

// Place is taken until Leave is called.
type Place struct {
	all    *Places
	of     *source
	number int64
	entry  *list.Element // element in of.places; nil after Leave
	evict  func()
}

// New returns a Places with the given number of places.
func New(most int) *Places { return &Places{most: most, sources: map[netip.Prefix]*source{}} }

// Take gives a place to a source address. If all are taken, it removes another place and calls that place's
// evict.
func (p *Places) Take(from netip.Addr, evict func()) *Place {
	if p.taken == p.most {
		victim := p.order[0].places.Front().Value.(*Place)
		victim.Leave()
		victim.evict()
	}
	prefix := sourceOf(from)
	s := p.sources[prefix]
	p.number++
	p.taken++
	place := &Place{all: p, of: s, number: p.number, evict: evict}
	if s != nil {
		place.entry = s.places.PushBack(place)
		heap.Fix(&p.order, s.index)
		return place
	}
	s = &source{prefix: prefix}
	place.of, place.entry = s, s.places.PushBack(place)
	p.sources[prefix] = s
	heap.Push(&p.order, s)
	return place
}

// Leave gives a place back. It does nothing for nil, and for a place that was given back or evicted.
func (place *Place) Leave() {
	if place == nil || place.entry == nil {
		return
	}
	p, s := place.all, place.of
	p.taken--
	if s.places.Len() == 1 {
		heap.Remove(&p.order, s.index)
		delete(p.sources, s.prefix)
	}
	s.places.Remove(place.entry)
	place.entry = nil
	if s.places.Len() > 0 {
		heap.Fix(&p.order, s.index)
	}
}

// sourceOf returns the prefix that counts as one source: an IPv4 address, or the /64 network of an IPv6
// address, in which one host may have every address. So all hosts of a link are one source for link-local
// addresses.
func sourceOf(a netip.Addr) netip.Prefix {
	bits := a.BitLen()
	if a.Is6() && !a.IsLinkLocalUnicast() {
		bits = 64
	}
	n, _ := a.WithZone("").Prefix(bits)
	return n
}
