package control

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"urdma/urdmad/clock"
)

// owner is who is behind a session. name, line and since are set by HELLO
// before the engine knows the client.
type owner struct {
	pid, uid int    // as the kernel says; pid 0 in a PID namespace we can't see
	name     string // as the client says
	line     string // as /proc says
	since    clock.Time
}

// nobody is the uid of a peer the kernel would not tell: it owns nothing.
const nobody = -1

// ownerOf asks the kernel who connected (SO_PEERCRED, unix(7)).
func ownerOf(c *net.UnixConn) owner {
	o := owner{uid: nobody}
	raw, err := c.SyscallConn()
	if err != nil {
		return o
	}
	_ = raw.Control(func(fd uintptr) { // a closed connection stays nobody's
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			o.pid, o.uid = int(cred.Pid), int(cred.Uid)
		}
	})
	return o
}

// seesAll reports whether the peer may look at everybody's objects: root and
// urdmad's own user could do so with a debugger.
func (o *owner) seesAll() bool { return o.uid == 0 || o.uid == os.Getuid() }

const maxLine = 256 // bytes of a command line that are kept

// commandLine reads a process's arguments, separated by spaces.
func commandLine(pid int) string {
	if pid <= 0 {
		return ""
	}
	f, err := os.Open(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, maxLine)
	n, _ := f.Read(b) // what cannot be read is not shown
	return printable(strings.TrimRight(strings.ReplaceAll(string(b[:n]), "\x00", " "), " "))
}

// printable replaces what would play tricks on a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.ToValidUTF8(s, "?"))
}

// cString is the text before the first NUL, printable.
func cString(b []byte) string {
	b, _, _ = bytes.Cut(b, []byte{0})
	return printable(string(b))
}
