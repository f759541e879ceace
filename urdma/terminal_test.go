package main

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTerminalIsLeftAlone: a command without a full-screen display must not query the terminal, as some libraries
// do when they are linked.
func TestTerminalIsLeftAlone(t *testing.T) {
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("SKIPPED: no pseudo terminal: %v", err)
	}
	defer ours.Close()
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("SKIPPED: no pseudo terminal: %v", err)
	}
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("SKIPPED: no pseudo terminal: %v", err)
	}
	defer terminal.Close()
	cmd := exec.Command(urdmaBinary, "version")
	cmd.Env = append(os.Environ(), "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1000)
	got, err := ours.Read(b)
	if err != nil || string(b[:got]) != "urdma devel\r\n" {
		t.Errorf("the terminal got %q, %v", b[:got], err)
	}
}
