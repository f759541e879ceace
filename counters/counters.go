// Package counters copies counts from the packages that count to the snapshot that shows them. In the counting
// package, a field has the tag counter:"name". The field with that JSON name in the snapshot (package inspect) has
// tags with the count's meaning and its name in metrics. A new count needs nothing else. The package knows neither
// the counting packages nor snapshots.
package counters

import (
	"fmt"
	"reflect"
	"strings"
)

// tag is the tag of fields that are counts.
const tag = "counter"

// Copy adds the counts of a From to the counts of a To, by their names. Make it once; Into allocates nothing.
type Copy[From, To any] struct{ pairs []pair }

type pair struct{ from, to []int }

// NewCopy finds, for every count of From, the field of To with that JSON name. It panics if there is none, so that
// a program with an invisible count doesn't start.
func NewCopy[From, To any]() *Copy[From, To] {
	c := new(Copy[From, To])
	shown := byName(reflect.TypeFor[To](), "json")
	for name, from := range byName(reflect.TypeFor[From](), tag) {
		to := shown[name]
		if len(to) != 1 {
			panic(fmt.Sprintf("counters: %v counts %q, and %v has %d such fields", reflect.TypeFor[From](), name,
				reflect.TypeFor[To](), len(to)))
		}
		for _, index := range from { // several packages may count under one name
			c.pairs = append(c.pairs, pair{index, to[0]})
		}
	}
	return c
}

// Into adds the counts of from to those of to.
func (c *Copy[From, To]) Into(to *To, from *From) {
	f, t := reflect.ValueOf(from).Elem(), reflect.ValueOf(to).Elem()
	for _, p := range c.pairs {
		n := t.FieldByIndex(p.to)
		if n.CanUint() {
			n.SetUint(n.Uint() + f.FieldByIndex(p.from).Uint())
		} else {
			n.SetInt(n.Int() + f.FieldByIndex(p.from).Int())
		}
	}
}

// Sum adds counts of one kind.
type Sum[T any] struct{ fields [][]int }

// NewSum finds the fields of T that have the tag key.
func NewSum[T any](key string) *Sum[T] {
	s := new(Sum[T])
	for _, all := range byName(reflect.TypeFor[T](), key) {
		s.fields = append(s.fields, all...)
	}
	return s
}

// Into adds the counts of from to those of to.
func (s *Sum[T]) Into(to, from *T) {
	f, t := reflect.ValueOf(from).Elem(), reflect.ValueOf(to).Elem()
	for _, index := range s.fields {
		if n := t.FieldByIndex(index); n.CanUint() {
			n.SetUint(n.Uint() + f.FieldByIndex(index).Uint())
		} else {
			n.SetInt(n.Int() + f.FieldByIndex(index).Int())
		}
	}
}

// byName finds the integers of a struct, and of structs inside it, by the part of their tag before a comma.
func byName(t reflect.Type, key string) map[string][][]int {
	found := map[string][][]int{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get(key), ",")
		switch {
		case !f.IsExported() && !f.Anonymous:
		case name != "" && (f.Type.Kind() == reflect.Uint64 || f.Type.Kind() == reflect.Int64):
			found[name] = append(found[name], f.Index)
		case f.Type.Kind() == reflect.Struct && !f.Anonymous && name == "":
			for name, all := range byName(f.Type, key) {
				for _, index := range all {
					found[name] = append(found[name], append(append([]int(nil), f.Index...), index...))
				}
			}
		}
	}
	return found
}
