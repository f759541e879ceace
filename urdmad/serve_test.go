package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"urdma/verbs/abi"
)

// heard waits for a message to the service manager that contains text, and returns it.
func heard(t *testing.T, c *net.UnixConn, text string) string {
	t.Helper()
	var all []string
	b := make([]byte, 4096)
	for until := time.Now().Add(time.Minute); ; {
		_ = c.SetReadDeadline(until)
		n, err := c.Read(b)
		if err != nil {
			t.Fatalf("nothing with %q among %q: %v", text, all, err)
		}
		all = append(all, string(b[:n]))
		if strings.Contains(all[len(all)-1], text) {
			return all[len(all)-1]
		}
	}
}

// greet connects and says HELLO as a client does.
func greet(t *testing.T, socket string) (net.Conn, unix.Errno) {
	t.Helper()
	c, err := net.Dial("unixpacket", socket)
	if err != nil {
		t.Fatal(err)
	}
	hello := abi.HelloRequest{Header: abi.Header{Type: abi.Hello, Length: uint32(abi.Size[abi.HelloRequest]())},
		ABIVersion: abi.Version}
	if _, err := c.Write(abi.Bytes(&hello)); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	b := make([]byte, abi.MaxMessage)
	if _, err := c.Read(b); err != nil {
		t.Fatal(err)
	}
	return c, unix.Errno(abi.At[abi.Header](b, 0).Status)
}

// TestServe plays the service manager of a whole urdmad with a loopback port.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	t.Setenv("NOTIFY_SOCKET", manager.LocalAddr().String())
	t.Setenv("WATCHDOG_USEC", "2000000")
	socket := filepath.Join(dir, "run", "urdmad.sock")
	file := filepath.Join(dir, "urdma.json")
	write := func(more string) {
		text := `{"ports":[{"vdev":"loopback","ipv4_address":"198.18.0.1/24"}],"socket":"` + socket + `"` + more + `}`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- runDaemon(ctx, source{file: file}) }()

	const status = "STATUS=urdma0 198.18.0.1/24 up; 0 clients, 0 queue pairs"
	if got, want := heard(t, manager, "READY=1"), "READY=1\n"+status; got != want {
		t.Errorf("said %q, expected %q", got, want)
	}
	heard(t, manager, "WATCHDOG=1")

	c, refused := greet(t, socket)
	if refused != 0 {
		t.Fatal(refused)
	}
	heard(t, manager, "; 1 client, ")

	hup := func() {
		if err := unix.Kill(os.Getpid(), unix.SIGHUP); err != nil {
			t.Fatal(err)
		}
		heard(t, manager, "RELOADING=1\nMONOTONIC_USEC=")
	}
	write(`,"limits":{"clients":"many"}`)
	hup()
	got := heard(t, manager, "READY=1")
	if !strings.Contains(got, "reload refused: "+file+":1: limits.clients: found \"many\"") {
		t.Errorf("after a wrong file: said %q", got)
	}

	write(`,"limits":{"clients":1}`)
	hup()
	if got := heard(t, manager, "READY=1"); strings.Contains(got, "refused") {
		t.Errorf("after a correct file: said %q", got)
	}
	if second, status := greet(t, socket); status != unix.EDQUOT {
		t.Errorf("a second client under the new limit: %v, expected EDQUOT", status)
	} else {
		second.Close()
	}
	c.Close()
	heard(t, manager, "; 0 clients, ")

	stop()
	heard(t, manager, "STOPPING=1")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "run", "*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// TestCountsThatAreZeroAreThere: metrics show the count of an error before the first one.
func TestCountsThatAreZeroAreThere(t *testing.T) {
	d := begin(t, "", "")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := d.snapshots.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Totals.BadFrames["checksum wrong"]; !ok || len(s.Totals.BadFrames) < 30 ||
		len(s.Totals.TerminatesSent) < 20 || len(s.Totals.TerminatesGot) < 20 {
		t.Errorf("%+v", s.Totals)
	}
}
