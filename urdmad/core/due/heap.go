// Package due orders the entries of a table by the time at which they are due, so that finding the due
// entries does not cost time for the others.
package due

// Entry has the time at which it is due, in nanoseconds, and stores its index in the heap.
type Entry interface {
	Due() int64
	Stands(index int)
}

// Heap implements heap.Interface; the first entry is due first. After an entry's time changes, call
// heap.Fix with its stored index.
type Heap[E Entry] []E

func (h Heap[E]) Len() int           { return len(h) }
func (h Heap[E]) Less(i, j int) bool { return h[i].Due() < h[j].Due() }
func (h Heap[E]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].Stands(i)
	h[j].Stands(j)
}

// Push implements heap.Interface.
func (h *Heap[E]) Push(x any) {
	e := x.(E)
	e.Stands(len(*h))
	*h = append(*h, e)
}

// Pop implements heap.Interface. It clears the removed element.
func (h *Heap[E]) Pop() any {
	old := *h
	last := len(old) - 1
	e := old[last]
	var none E
	old[last] = none
	*h = old[:last]
	return e
}
