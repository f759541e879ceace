package counters

import (
	"strings"
	"testing"
)

type traffic struct {
	Packets uint64 `counter:"packets"`
	Bytes   uint64 `counter:"octets"`
	Silent  uint64
}

type room struct {
	Traffic traffic // one level down
	More    struct {
		Lost uint64 `counter:"lost"` // counted by two
	}
	traffic2
	Longest  int64 `counter:"longest_ns"`
	Unlisted string
}

type traffic2 struct {
	Lost uint64 `counter:"lost"`
}

type shown struct {
	Lost    uint64 `json:"lost"`
	Octets  uint64 `json:"octets,omitempty"`
	Packets uint64 `json:"packets"`
	Longest int64  `json:"longest_ns"`
	Other   uint64 `json:"other"`
}

func TestCopyAdds(t *testing.T) {
	c := NewCopy[room, shown]()
	s := shown{Lost: 100, Other: 7}
	r := room{More: struct {
		Lost uint64 `counter:"lost"`
	}{10}, Traffic: traffic{Packets: 1, Bytes: 2, Silent: 3}, traffic2: traffic2{Lost: 4}, Longest: 5}
	c.Into(&s, &r)
	c.Into(&s, &r)
	if want := (shown{Lost: 128, Octets: 4, Packets: 2, Longest: 10, Other: 7}); s != want {
		t.Errorf("%+v, expected %+v", s, want)
	}
	if n := testing.AllocsPerRun(100, func() { c.Into(&s, &r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestCopyOfUnknown: a count that nobody would see is reported at program start.
func TestCopyOfUnknown(t *testing.T) {
	defer func() {
		if r := recover(); r == nil ||
			!strings.Contains(r.(string), `counts "packets"`) && !strings.Contains(r.(string), `counts "octets"`) {
			t.Errorf("recovered %v", r)
		}
	}()
	NewCopy[traffic, traffic2]()
}

func TestSum(t *testing.T) {
	a, b := traffic{1, 2, 3}, traffic{10, 20, 30}
	NewSum[traffic]("counter").Into(&a, &b)
	if a != (traffic{11, 22, 3}) {
		t.Errorf("%+v", a)
	}
}
