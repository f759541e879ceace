package port

import (
	"slices"
	"testing"
)

func TestLinkState(t *testing.T) {
	var l LinkState
	var seen [2][]bool
	l.Watch(func(up bool) { seen[0] = append(seen[0], up && l.Up()) })
	l.Set(false)
	l.Set(true)
	l.Set(true)
	l.Watch(func(up bool) { seen[1] = append(seen[1], up) })
	l.Set(false)
	l.Set(true)
	if want := []bool{true, false, true}; !slices.Equal(seen[0], want) || !slices.Equal(seen[1], want[1:]) {
		t.Errorf("the watchers saw %v", seen)
	}
	if s := l.Stats(); !l.Up() || s.LinkUps != 2 || s.LinkDowns != 1 {
		t.Errorf("up %v, %+v", l.Up(), s)
	}
	l.Close()
	l.Set(true)
	if l.Up() || len(seen[0]) != 3 {
		t.Errorf("after Close: up %v, the watchers saw %v", l.Up(), seen)
	}
}
