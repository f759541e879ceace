package doctor

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"urdma/config"
	"urdma/inspect"
)

// Facts describes a machine, its urdmad, and the program to run on it.
type Facts struct {
	Version string // version of this command

	Socket   string            // the socket of the urdmad that programs would find
	Places   []string          // the places where programs look
	Daemon   *inspect.Snapshot // nil: no urdmad answers
	NoDaemon error             // the reason why none answers
	Unit     error             // why systemd's unit of urdmad has failed; nil: it has not
	Machine  bool              // the service in question is the machine's, as for root, not the user's

	Config      *config.Config // configuration that urdmad runs or would run with
	ConfigError error
	Planned     bool   // the configuration was named on the command line: its urdmad may not run yet
	Capability  uint64 // capabilities of urdmad's process, or of a urdmad started from here
	Interfaces  []Interface
	Listening   []netip.AddrPort // listening TCP sockets of this network namespace
	Bound       []netip.AddrPort // UDP sockets of this network namespace
	NoDirectory []string         // missing directories of memif sockets that a port would create

	Kernel       [2]int // major and minor
	MaxMapCount  int
	MemLock      uint64 // in bytes, MaxUint64 without a limit
	OpenFiles    uint64
	HugePages    int
	Cards        []Card
	Commands     bool        // the user wants the commands that take cards from the kernel
	Nodes        map[int]int // NUMA node of each core
	Library      string      // path of liburdma.so
	LibraryError error

	Program *Program // nil: no program was named
}

// Interface is a network interface of the kernel.
type Interface struct {
	Name      string
	Up        bool
	MTU       int
	Addresses []netip.Prefix
}

// Program is a program to run on urdmad.
type Program struct {
	Path     string
	Refusal  error // why the library cannot be preloaded into it
	Links    bool  // links with libibverbs or librdmacm
	Opens    bool  // contains one of their names, so it may load them by dlopen(3)
	Sanitize bool  // was built with AddressSanitizer
}

// Gather examines this machine. Facts that it can't find out stay zero.
func Gather(f *Facts) {
	f.Capability = capabilities(f.daemonPID())
	f.Interfaces = interfaces()
	f.Listening = listening()
	f.Bound = sockets("07", "/proc/net/udp", "/proc/net/udp6")
	f.NoDirectory = noDirectories(f.Config)
	f.Kernel = kernel()
	f.MaxMapCount = number("/proc/sys/vm/max_map_count")
	f.HugePages = hugePages()
	f.Cards = Cards("/sys")
	f.Nodes = nodes("/sys")
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r) == nil {
		f.MemLock = r.Cur
	}
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) == nil {
		f.OpenFiles = r.Cur
	}
}

func (f *Facts) daemonPID() string {
	if f.Daemon != nil && f.Daemon.Daemon.PID > 0 {
		return strconv.Itoa(f.Daemon.Daemon.PID)
	}
	return "self"
}

// capabilities reads CapEff of a process.
func capabilities(pid string) uint64 {
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "\nCapEff:")
	line, _, _ := strings.Cut(after, "\n")
	set, _ := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return set
}

func interfaces() (out []Interface) {
	list, err := net.Interfaces()
	if err != nil {
		return nil
	}
	for _, i := range list {
		one := Interface{Name: i.Name, Up: i.Flags&net.FlagUp != 0 && i.Flags&net.FlagRunning != 0, MTU: i.MTU}
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				one.Addresses = append(one.Addresses, p)
			}
		}
		out = append(out, one)
	}
	return out
}

// noDirectories lists missing directories in which the configuration's ports would create sockets.
func noDirectories(c *config.Config) (out []string) {
	if c == nil {
		return nil
	}
	for i := range c.Ports {
		v, err := config.ParseVdev(c.Ports[i].Vdev)
		if err != nil || !v.Server || strings.HasPrefix(v.Socket, "@") {
			continue
		}
		if _, err := os.Stat(filepath.Dir(v.Socket)); errors.Is(err, fs.ErrNotExist) {
			out = append(out, filepath.Dir(v.Socket))
		}
	}
	return out
}

// listening lists the listening TCP sockets.
func listening() []netip.AddrPort { return sockets("0A", "/proc/net/tcp", "/proc/net/tcp6") }

// sockets lists the sockets in a state, from files of proc_net_tcp(5) and proc_net_udp(5).
func sockets(state string, files ...string) (out []netip.AddrPort) {
	for _, file := range files {
		text, _ := os.ReadFile(file) // missing on a kernel without IPv6
		for _, line := range strings.Split(string(text), "\n") {
			f := strings.Fields(line)
			if len(f) < 4 || f[3] != state {
				continue
			}
			address, number, _ := strings.Cut(f[1], ":")
			port, err := strconv.ParseUint(number, 16, 16)
			if a, ok := addressOf(address); ok && err == nil {
				out = append(out, netip.AddrPortFrom(a, uint16(port)))
			}
		}
	}
	return out
}

// addressOf parses an address as the kernel prints it: words in the machine's byte order.
func addressOf(text string) (netip.Addr, bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b)%4 != 0 {
		return netip.Addr{}, false
	}
	for w := b; len(w) > 0; w = w[4:] {
		binary.BigEndian.PutUint32(w, binary.NativeEndian.Uint32(w))
	}
	a, ok := netip.AddrFromSlice(b)
	return a.Unmap(), ok
}

func kernel() (v [2]int) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return v
	}
	_, _ = fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &v[0], &v[1]) // missing parts stay 0
	return v
}

func number(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}

// hugePages counts the free huge pages of all sizes.
func hugePages() (n int) {
	files, _ := filepath.Glob("/sys/kernel/mm/hugepages/*/free_hugepages")
	for _, f := range files {
		n += number(f)
	}
	return n
}

// maxProgram bounds how much of a program is searched for names.
const maxProgram = 64 << 20

// LookAt examines a program's file. libraries are the libraries it links with.
func (p *Program) LookAt(libraries []string) {
	for _, l := range libraries {
		p.Links = p.Links || strings.HasPrefix(l, "libibverbs.so") || strings.HasPrefix(l, "librdmacm.so")
		p.Sanitize = p.Sanitize || strings.HasPrefix(l, "libasan.so")
	}
	f, err := os.Open(p.Path)
	if err != nil {
		return
	}
	defer f.Close()
	b := make([]byte, 1<<20)
	// pieces overlap, because a name may lie across two
	for at := int64(0); at < maxProgram; at += int64(len(b)) - 64 {
		n, err := f.ReadAt(b, at)
		p.Opens = p.Opens || bytes.Contains(b[:n], []byte("libibverbs.so")) || bytes.Contains(b[:n], []byte("librdmacm.so"))
		p.Sanitize = p.Sanitize || bytes.Contains(b[:n], []byte("__asan_init"))
		if err != nil {
			return
		}
	}
}
