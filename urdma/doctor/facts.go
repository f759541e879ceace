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

// Facts is a machine, its urdmad, and the program to run on it.
type Facts struct {
	Version string // of this command

	Socket   string            // of the urdmad that programs would find
	Places   []string          // where they look
	Daemon   *inspect.Snapshot // nil: none answers
	NoDaemon error             // why not

	Config      *config.Config // what a urdmad would run with
	ConfigError error
	Planned     bool   // it was named: that of a urdmad that may not have been started yet
	Capability  uint64 // of urdmad's process, or of a urdmad started from here
	Interfaces  []Interface
	Listening   []netip.AddrPort // TCP sockets of this network namespace
	Bound       []netip.AddrPort // its UDP sockets
	NoDirectory []string         // of memif sockets to be made: those that there are not

	Kernel       [2]int // major and minor
	MaxMapCount  int
	MemLock      uint64 // bytes, MaxUint64 without limit
	OpenFiles    uint64
	HugePages    int
	Cards        []Card
	Nodes        map[int]int // NUMA nodes of cores
	Library      string      // liburdma.so
	LibraryError error

	Program *Program // nil: none was named
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
	Refusal  error // why nothing can be preloaded into it
	Links    bool  // with libibverbs or librdmacm
	Opens    bool  // names one of them, so it may load it by dlopen(3)
	Sanitize bool  // is built with AddressSanitizer
}

// Gather looks at this machine. What it can't find out keeps its zero.
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

// noDirectories are the directories in which a configuration's ports can make no socket.
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

// listening are the TCP sockets that listen.
func listening() []netip.AddrPort { return sockets("0A", "/proc/net/tcp", "/proc/net/tcp6") }

// sockets reads the sockets of a state from files of proc_net_tcp(5) and proc_net_udp(5).
func sockets(state string, files ...string) (out []netip.AddrPort) {
	for _, file := range files {
		text, _ := os.ReadFile(file) // a kernel without IPv6 lacks one
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

// addressOf reads an address as the kernel prints one: words in its own byte order.
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
	_, _ = fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &v[0], &v[1]) // what is missing stays 0
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

// hugePages counts the free ones of all sizes.
func hugePages() (n int) {
	files, _ := filepath.Glob("/sys/kernel/mm/hugepages/*/free_hugepages")
	for _, f := range files {
		n += number(f)
	}
	return n
}

// maxProgram bounds how much of a program is searched for names.
const maxProgram = 64 << 20

// LookAt finds out what a program's file tells; libraries are those it links
// with.
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
	for at := int64(0); at < maxProgram; at += int64(len(b)) - 64 { // names may lie across two pieces
		n, err := f.ReadAt(b, at)
		p.Opens = p.Opens || bytes.Contains(b[:n], []byte("libibverbs.so")) || bytes.Contains(b[:n], []byte("librdmacm.so"))
		p.Sanitize = p.Sanitize || bytes.Contains(b[:n], []byte("__asan_init"))
		if err != nil {
			return
		}
	}
}
