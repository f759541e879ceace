package mem

import (
	"cmp"
	"slices"
)

// coverage counts for each byte of a file how many regions contain it, as runs of equal counts: its size
// depends on the number of regions, not on their lengths.
type coverage struct {
	edges []edge // in ascending order; no two adjacent edges have the same count
}

// edge begins a run that ends at the next edge. The count is 0 before the first edge, and from the last
// edge on.
type edge struct {
	at    uint64
	count int
}

// span is the half-open range [from, to).
type span struct{ from, to uint64 }

// index returns the index of the first edge at or after at.
func (c *coverage) index(at uint64) int {
	i, _ := slices.BinarySearchFunc(c.edges, at, func(e edge, at uint64) int { return cmp.Compare(e.at, at) })
	return i
}

// before returns the count just before edge i.
func (c *coverage) before(i int) int {
	if i == 0 {
		return 0
	}
	return c.edges[i-1].count
}

// cut makes an edge at at, if there is none, and returns its index.
func (c *coverage) cut(at uint64) int {
	i := c.index(at)
	if i == len(c.edges) || c.edges[i].at != at {
		c.edges = slices.Insert(c.edges, i, edge{at, c.before(i)})
	}
	return i
}

// join removes edge i if the count does not change there.
func (c *coverage) join(i int) {
	if c.edges[i].count == c.before(i) {
		c.edges = slices.Delete(c.edges, i, i+1)
	}
}

// add increments the counts in s, which is not empty, and calls fresh for each part whose count was 0.
func (c *coverage) add(s span, fresh func(span)) {
	first, last := c.cut(s.from), c.cut(s.to)
	for i := first; i < last; i++ {
		if c.edges[i].count == 0 {
			fresh(span{c.edges[i].at, c.edges[i+1].at})
		}
		c.edges[i].count++
	}
	c.join(last)
	c.join(first)
}

// drop undoes add.
func (c *coverage) drop(s span) {
	first, last := c.cut(s.from), c.cut(s.to)
	for i := first; i < last; i++ {
		c.edges[i].count--
	}
	c.join(last)
	c.join(first)
}
