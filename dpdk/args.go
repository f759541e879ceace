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

// heldBuffers is how many buffers per queue, beyond those in the rings, are for frames that the engine
// processes and prepares, and for drivers that keep some of their own, as af_xdp does.
const heldBuffers = 6144

// pool has a port's ring sizes and the size of its buffers.
type pool struct {
	rxDesc, txDesc int
	minRoom        int // bytes that a buffer needs after its headroom
}

// buffers returns the number of buffers in a pool.
func (p *pool) buffers() int { return p.rxDesc + p.txDesc + heldBuffers }

// pool returns the sizes in the configuration, before the driver's limits are known.
func (s *Spec) pool() pool {
	return pool{rxDesc: s.descriptors(s.RxDesc), txDesc: s.descriptors(s.TxDesc)}
}

// descriptors returns the size of a ring if n is requested: AF_XDP's are powers of two.
func (s *Spec) descriptors(n int) int {
	n = orDefault(n)
	if driverOf(s.Vdev) == "net_af_xdp" {
		return 1 << bits.Len(uint(n-1))
	}
	return n
}

// usualRoom is the buffer size that drivers of NICs expect, in bytes (RTE_MBUF_DEFAULT_DATAROOM).
const usualRoom = 2048

// maxRoom is the largest multiple of 1 KiB that an mbuf, whose lengths have 16 bits, can have after its
// headroom.
const maxRoom = 63 << 10

// setRoom sets minRoom for a driver that requires receive buffers of at least minRx bytes
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

// memoryMB returns the memory that the pools of all ports and the drivers need. A device without a configured
// MTU may have jumbo frames.
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

// ealArguments returns the EAL's arguments for these ports. Our arguments are left out if the user's have the
// same purpose.
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

// mentions reports whether the user gave any option of a group, as "-x", "-x5", "--long" or "--long=value".
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

// pciArguments keep the EAL off all devices that are not configured.
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

// lcores returns an argument for one EAL core, which may run on all CPUs of this process: workers are our own
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

// freeHugeMB returns how much huge page memory is free and usable by this process.
func freeHugeMB() int {
	if os.Geteuid() != 0 {
		return 0 // an anonymous huge page memfd needs a group or CAP_IPC_LOCK; assume that we have neither
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
