package mem

import (
	"cmp"
	"slices"
)

// coverage counts for each byte of a file how many regions it belongs to, as
// runs of equal counts: what it takes goes with the regions, not with their size.
type coverage struct {
	edges []edge // in ascending order; no two neighbours have the same count
}

// edge begins a run that lasts to the next edge; before the first edge the count
// is 0, and the last edge's is.
type edge struct {
	at    uint64
	count int
}

// span is [from, to).
type span struct{ from, to uint64 }

// index is that of the first edge at or behind at.
func (c *coverage) index(at uint64) int {
	i, _ := slices.BinarySearchFunc(c.edges, at, func(e edge, at uint64) int { return cmp.Compare(e.at, at) })
	return i
}

// before is the count just before edge i.
func (c *coverage) before(i int) int {
	if i == 0 {
		return 0
	}
	return c.edges[i-1].count
}

// cut makes an edge at at, and returns its index.
func (c *coverage) cut(at uint64) int {
	i := c.index(at)
	if i == len(c.edges) || c.edges[i].at != at {
		c.edges = slices.Insert(c.edges, i, edge{at, c.before(i)})
	}
	return i
}

// join removes edge i if nothing changes there.
func (c *coverage) join(i int) {
	if c.edges[i].count == c.before(i) {
		c.edges = slices.Delete(c.edges, i, i+1)
	}
}

// add counts one region more on s, which is not empty, and calls fresh for each
// part that had none.
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
