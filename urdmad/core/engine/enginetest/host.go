package enginetest

import (
	"log/slog"
	"math/rand/v2"
	"net/netip"

	"urdma/dpdk/port"
	"urdma/test/linked"
	"urdma/urdmad/attach/tap"
	"urdma/urdmad/core/clock"
	"urdma/urdmad/core/cm"
	"urdma/urdmad/core/connect"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/netif"
	"urdma/wire"
)

// Host is one urdmad without its control socket.
type Host struct {
	World   *World
	Name    string
	Engine  *engine.Engine
	Tap     *tap.Tap
	CM      *cm.Manager
	Numbers *connect.Numbers
	Port    *linked.Port
	Addr    netip.Addr // address of the port
	IP      wire.IPv4  // the same, unless Options.IPv6

	stopped  bool
	jobsSeen int64
	clients  int
}

func newHost(w *World, name string, p *linked.Port, n byte) *Host {
	at := n
	if w.opt.Workers {
		at = 1
	}
	h := &Host{World: w, Name: name, Port: p, IP: wire.IPv4{10, 0, 0, at}}
	h.Addr = netip.AddrFrom4(h.IP)
	if w.opt.IPv6 {
		h.Addr, h.IP = netip.AddrFrom16([16]byte{0: 0xfd, 15: at}), wire.IPv4{}
	}
	var src rand.Source = rand.NewPCG(w.opt.Seed, 100+uint64(n))
	if w.opt.NearWrap {
		src = &wrapSource{src: src}
	}
	log := slog.New(w.opt.Log)
	set := engine.Config{Rand: src, Log: log, Window: w.opt.Window,
		DeathTimeout: clock.Time(w.opt.DeathTimeout), Wake: func() { w.jobsEnded.Add(1) }}
	managing := cm.Config{Log: log, Addrs: []netip.Addr{h.Addr},
		Timeout: clock.Time(w.opt.ConnectTimeout), MaxDepth: w.opt.MaxReads}
	if w.opt.Workers {
		number := int(n) - 1
		set.Mine = w.numbers.Of(number).HasPair
		set.Numbers, managing.Shared = w.numbers.Of(number), w.numbers.Of(number)
	}
	h.Engine = engine.New(set)
	h.Tap = tap.New(h.Engine)
	h.CM, h.Numbers = connect.New(h.Engine, managing)
	return h
}

func (h *Host) addPort(p port.Port) {
	dev := h.Engine.AddPort(p, netif.Address{Prefix: netip.PrefixFrom(h.Addr, h.Addr.BitLen()-8),
		Gateway: h.World.opt.Gateway, SocketPort: SocketPort})
	if h.World.opt.TCP {
		h.Engine.CarryOverTCP(dev, nil, 0, h.World.opt.CRC)
	}
	if h.World.opt.RoCE {
		h.Engine.SpeakRoCE(dev)
	}
	if h.World.opt.Immediate {
		h.Engine.PlaceImmediately(dev)
	}
}

// Do runs fn on the engine's thread, in a turn of its own.
func (h *Host) Do(fn func()) {
	done := false
	h.Engine.Do(func() { fn(); done = true })
	h.Engine.Turn(h.World.Now())
	if !done {
		h.World.T.Fatal("Engine.Do did not run in the next turn")
	}
}

// Stop ends the host like SIGKILL: it takes no more turns.
func (h *Host) Stop() { h.stopped = true }

// Stopped reports whether Stop was called.
func (h *Host) Stopped() bool { return h.stopped }

// Other returns the other host.
func (h *Host) Other() *Host {
	if h == h.World.A {
		return h.World.B
	}
	return h.World.A
}

// wrapSource answers every other time with numbers whose upper half, which
// becomes an initial PSN, is just below 2^32.
type wrapSource struct {
	src rand.Source
	n   int
}

// Uint64 is rand.Source's.
func (s *wrapSource) Uint64() uint64 {
	v := s.src.Uint64()
	if s.n++; s.n%2 == 0 {
		v |= 0xffffff80 << 32
	}
	return v
}
