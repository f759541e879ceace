package sim

import (
	"fmt"
	"sort"
	"testing"
)

func TestZZ(t *testing.T) {
	type x struct {
		at   float64
		seed uint64
		d, r uint64
		txt  string
	}
	var xs []x
	var D, R, TO, UN, NL uint64
	for s := uint64(1); s <= 10000; s++ {
		r := newSeedRun(s, 200)
		if err := r.run(); err != nil {
			t.Fatal(s, err)
		}
		var d, rs uint64
		for i := range 2 {
			st := r.world.Peers[i].Conn.Stats()
			d += r.world.Links[i].Dropped + r.world.Links[i].Overflowed
			rs += st.Resent
			TO += st.Timeouts
			UN += st.Undone
			NL += st.Needless
		}
		if !r.ext() {
			continue
		}
		D += d
		R += rs
		xs = append(xs, x{float64(r.world.Now) / 1e6, s, d, rs, r.text})
	}
	sort.Slice(xs, func(i, j int) bool { return xs[i].at > xs[j].at })
	fmt.Println("dropped", D, "resent", R, "timeouts", TO, "undone", UN, "needless", NL)
	for i := 0; i < 10; i++ {
		fmt.Println(xs[i].at, xs[i].seed, xs[i].d, xs[i].r)
	}
	for _, p := range []int{10, 100, 1000, 5000} {
		fmt.Println(p, xs[p].at)
	}
	fmt.Println(xs[0].txt)
	sort.Slice(xs, func(i, j int) bool { return int(xs[i].r)-int(xs[i].d) > int(xs[j].r)-int(xs[j].d) })
	for i := 0; i < 10; i++ {
		fmt.Println(xs[i].at, xs[i].seed, xs[i].d, xs[i].r)
	}
	fmt.Println(xs[0].txt)
}
func (r *seedRun) ext() bool { return r.world.Peers[0].cfg.Extended }
