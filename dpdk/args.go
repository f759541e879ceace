package dpdk

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// heldBuffers is how many received frames the engine may keep (out of order)
// and prepare at a time, per queue, beyond what the rings hold; spareBuffers of
// them are for what it prepares, and for drivers that keep a few of their own.
const (
	heldBuffers  = 6144
	spareBuffers = heldBuffers / 4
)

// pool is a port's ring sizes and the buffers for them.
type pool struct {
	rxDesc, txDesc int
	minRoom        int // bytes that a buffer must have behind its headroom
}

// buffers is how many a pool has.
func (p *pool) buffers() int { return p.rxDesc + p.txDesc + heldBuffers }

// pool is what the configuration asks for, before the driver's limits are known.
func (s *Spec) pool() pool {
	return pool{rxDesc: s.descriptors(s.RxDesc), txDesc: s.descriptors(s.TxDesc)}
}

// descriptors is the size of a ring for which n is asked: AF_XDP's are powers of
// two.
func (s *Spec) descriptors(n int) int {
	n = orDefault(n)
	if driverOf(s.Vdev) == "net_af_xdp" {
		return 1 << bits.Len(uint(n-1))
	}
	return n
}

// keptLimit is how many buffers may be kept by retained packets, when the driver
// took inUse as it started: the receive ring's, and for af_xdp far more.
func (p *pool) keptLimit(inUse int) int {
	return max(0, p.buffers()-max(inUse, p.rxDesc)-p.txDesc-spareBuffers)
}

// usualRoom is what drivers of NICs are written for, in bytes (RTE_MBUF_DEFAULT_DATAROOM).
const usualRoom = 2048

// maxRoom is the most of whole KiB that an mbuf, whose lengths have 16 bits, can
// have behind its headroom.
const maxRoom = 63 << 10

// setRoom sets minRoom for a driver whose receive buffers have at least minRx bytes
// (rte_eth_dev_info.min_rx_bufsize).
func (p *pool) setRoom(minRx int, software bool) error {
	p.minRoom = max(p.minRoom, minRx)
	if !software {
		p.minRoom = max(p.minRoom, usualRoom)
	}
	if p.minRoom > maxRoom {
		return fmt.Errorf("the driver wants receive buffers of %d bytes, ours have at most %d", minRx, maxRoom)
	}
	return nil
}

func orDefault(n int) int {
	if n == 0 {
		return defaultDesc
	}
	return n
}

// memoryMB is what the pools of all ports and the drivers' own needs come to. A
// device whose MTU is not stated may turn out to be jumbo.
func memoryMB(specs []Spec) int {
	bytes := 0
	for i := range specs {
		s := &specs[i]
		if s.native() {
			continue
		}
		mtu := s.MTU
		if mtu == 0 {
			mtu = maxMTU
		}
		pool := s.pool()
		bytes += pool.buffers()*(max(mtu+1024, usualRoom)+512) + 16<<20
	}
	return 64 + bytes>>20
}

// ealArguments are the EAL's arguments for these ports. Ours are left out where
// the user's say the same thing differently.
func ealArguments(specs []Spec, user []string) []string {
	args := []string{"urdmad"}
	add := func(group []string, ours ...string) {
		if !mentions(user, group) {
			args = append(args, ours...)
		}
	}
	add([]string{"-l", "-c", "--lcores"}, "--lcores", lcores())
	add([]string{"--file-prefix"}, fmt.Sprintf("--file-prefix=urdmad-%d", os.Getpid()))
	add([]string{"--telemetry", "--no-telemetry"}, "--no-telemetry")
	mb := memoryMB(specs)
	// One process: nothing is shared with secondaries, so no files are needed.
	memory := []string{"--no-huge", "--no-shconf", "-m", strconv.Itoa(mb)}
	if freeHugeMB() >= mb {
		memory = []string{"--in-memory"}
	}
	add([]string{"--no-huge", "--in-memory", "-m", "--socket-mem", "--huge-dir", "--legacy-mem"}, memory...)
	add([]string{"-a", "--allow", "-b", "--block", "--no-pci"}, pciArguments(specs)...)
	return append(args, user...)
}

// mentions reports whether the user gave any option of a group, as "-x", "-x5",
// "--long" or "--long=value".
func mentions(user, group []string) bool {
	return slices.ContainsFunc(user, func(a string) bool {
		return slices.ContainsFunc(group, func(g string) bool {
			if strings.HasPrefix(g, "--") {
				name, _, _ := strings.Cut(a, "=")
				return name == g
			}
			return strings.HasPrefix(a, g)
		})
	})
}

// pciArguments keep the EAL off every device that was not asked for.
func pciArguments(specs []Spec) []string {
	var args []string
	for i := range specs {
		if specs[i].PCI != "" {
			args = append(args, "-a", specs[i].PCI)
		}
	}
	if args == nil {
		return []string{"--no-pci"}
	}
	return args
}

// lcores makes one EAL core that may run wherever we may: workers are our own
// threads.
func lcores() string {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return "0@0"
	}
	var cpus []string
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			cpus = append(cpus, strconv.Itoa(i))
		}
	}
	return "0@(" + strings.Join(cpus, ",") + ")"
}

// freeHugeMB is how much huge page memory this process could use: pages that are
// free, if it may use them.
func freeHugeMB() int {
	if os.Geteuid() != 0 {
		return 0 // an anonymous huge page memfd needs a group or CAP_IPC_LOCK; stay safe
	}
	kb := 0
	dirs, _ := filepath.Glob("/sys/kernel/mm/hugepages/hugepages-*kB")
	for _, d := range dirs {
		size, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(d), "hugepages-"), "kB"))
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(d, "free_hugepages"))
		if err != nil {
			continue
		}
		free, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			continue
		}
		kb = max(kb, size*free)
	}
	return kb >> 10
}
