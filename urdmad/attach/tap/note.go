package tap

import (
	"cmp"
	"reflect"
	"regexp"
	"strings"

	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/datagram"
	"urdma/urdmad/core/netif"
	"urdma/urdmad/core/roce"
	"urdma/urdmad/core/trp"
)

// received is the received frame that is being handled.
type received struct {
	n      *netif.Interface // nil: none
	conn   *trp.Conn        // nil: none
	before counts
	timer  *clock.Timer // fires in the turn that handles the frame
}

// counts are the counters that say what became of a frame, apart from those of all frames.
type counts struct {
	TRP       trp.Stats
	Conn      trp.ConnStats
	Datagrams datagram.Stats
	RoCE      roce.Stats
}

func (v *Tap) counts() counts {
	c := counts{TRP: v.e.TRP.Stats, Datagrams: v.e.Datagrams.Stats, RoCE: v.e.RoCE.Stats}
	c.Datagrams.Sent, c.Datagrams.Received, c.Datagrams.Local, c.RoCE.RC.Sent = 0, 0, 0, 0
	if v.received.conn != nil {
		c.Conn = v.received.conn.Stats
		c.Conn.TxPackets, c.Conn.RxPackets = 0, 0
	}
	return c
}

// begin begins the handling of the frame just shown.
func (v *Tap) begin(n *netif.Interface) {
	r := &v.received
	r.n, r.conn = n, v.e.TRP.Port(n.Dev).Conn(v.sight.Our.Port())
	n.Stats.Last = ""
	r.before = v.counts()
	v.e.Clock.Set(r.timer, v.e.Clock.Now)
}

// handled ends it. The frame's note has the reason for which it was dropped, or the counters that have
// changed since it came.
func (v *Tap) handled() {
	r := &v.received
	if r.n == nil {
		return
	}
	note := ""
	if r.n.Stats.Last != "" {
		note = "dropped: " + string(r.n.Stats.Last)
	} else if now := v.counts(); now != r.before {
		note = strings.Join(changed(reflect.ValueOf(r.before), reflect.ValueOf(now)), ", ")
	}
	r.n, r.conn = nil, nil
	v.e.Clock.Set(r.timer, clock.Never)
	for i := range v.list {
		if v.list[i].waits {
			v.list[i].waits = false
			v.list[i].viewer.End(note)
		}
	}
}

var capital = regexp.MustCompile(`([a-z])([A-Z])`)

// changed returns the names of the counters that differ.
func changed(a, b reflect.Value) (names []string) {
	for i := range a.NumField() {
		f := a.Type().Field(i)
		switch {
		case f.Type.Kind() == reflect.Struct:
			names = append(names, changed(a.Field(i), b.Field(i))...)
		case a.Field(i).Uint() != b.Field(i).Uint():
			name := strings.ToLower(capital.ReplaceAllString(f.Name, "${1}_$2"))
			names = append(names, cmp.Or(f.Tag.Get("counter"), name))
		}
	}
	return names
}
