// Package due orders the entries of a table by when something is to be done about
// them, so that looking for what is due costs nothing for all the others.
package due

// Entry says when it is due, in nanoseconds, and remembers where it stands.
type Entry interface {
	Due() int64
	Stands(index int)
}

// Heap is for container/heap; the first entry is due first. An entry whose time
// changes is put right by heap.Fix at the index it was told last.
type Heap[E Entry] []E

func (h Heap[E]) Len() int           { return len(h) }
func (h Heap[E]) Less(i, j int) bool { return h[i].Due() < h[j].Due() }
func (h Heap[E]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].Stands(i)
	h[j].Stands(j)
}

// Push is heap.Interface's.
func (h *Heap[E]) Push(x any) {
	e := x.(E)
	e.Stands(len(*h))
	*h = append(*h, e)
}

// Pop is heap.Interface's. What is taken out is forgotten.
func (h *Heap[E]) Pop() any {
	old := *h
	last := len(old) - 1
	e := old[last]
	var none E
	old[last] = none
	*h = old[:last]
	return e
}
