// Package places bounds what strangers may have wait here: connections that have asked for
// nothing yet, requests that a listener has no room for. Where all places are taken, a
// newcomer gets the one that the source with the most of them has had longest. So nobody
// keeps others out by waiting, and whoever takes many places loses his own.
//
// It knows neither what waits nor the time.
package places

import (
	"container/heap"
	"container/list"
	"net/netip"

	"urdma/urdmad/core/due"
)

// Places are those of one kind.
type Places struct {
	most    int
	taken   int
	number  int64 // of the newest place
	sources map[netip.Prefix]*source
	order   due.Heap[*source] // the one that gives up a place next is first
}

// source is one whose things wait here.
type source struct {
	prefix netip.Prefix
	places list.List // of *Place, the oldest first
	index  int       // in Places.order
}

// Due is due.Entry's: the more places, and the older the oldest, the sooner.
func (s *source) Due() int64 {
	return s.places.Front().Value.(*Place).number - int64(s.places.Len())<<40
}

// Stands is due.Entry's.
func (s *source) Stands(i int) { s.index = i }

// Place is taken until Leave.
type Place struct {
	all    *Places
	of     *source
	number int64
	entry  *list.Element // of of.places; nil once left
	evict  func()
}

// New returns as many places as that.
func New(most int) *Places { return &Places{most: most, sources: map[netip.Prefix]*source{}} }

// Take gives a place to what comes from an address. If all are taken, the evict of another
// is called, which has lost its place.
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

// Leave gives a place back. Of nil, and of one that was given back, nothing happens.
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

// sourceOf is what counts as one source: an address, or the 64 bits of an IPv6 network
// of which one host may have every address. All hosts of a link share those of
// link-local addresses.
func sourceOf(a netip.Addr) netip.Prefix {
	bits := a.BitLen()
	if a.Is6() && !a.IsLinkLocalUnicast() {
		bits = 64
	}
	n, _ := a.WithZone("").Prefix(bits)
	return n
}
