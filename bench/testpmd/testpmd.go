// Package testpmd runs dpdk-testpmd, DPDK's own measuring program, as a peer to be
// measured against.
package testpmd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Memif measures DPDK's net_memif between two testpmds, one sending frames of
// size bytes, one receiving, over a socket at path: frames a second. The caller
// removes what lies beside path afterwards.
func Memif(path string, size, ring int, seconds float64) (pps float64, err error) {
	bin, err := exec.LookPath("dpdk-testpmd")
	if err != nil {
		return 0, errors.New("dpdk-testpmd (Debian package dpdk-dev) is not installed")
	}
	rx, err := start(bin, path, "server", size, ring, 0, "--forward-mode=rxonly", "--stats-period=1")
	if err != nil {
		return 0, err
	}
	defer rx.stop()
	if err := waitFor(path); err != nil {
		return 0, err
	}
	time.Sleep(300 * time.Millisecond)
	tx, err := start(bin, path, "client", size, ring, 1, "--forward-mode=txonly", fmt.Sprintf("--txpkts=%d", size))
	if err != nil {
		return 0, err
	}
	defer tx.stop()
	time.Sleep(time.Duration((4 + seconds) * 1e9))
	return rx.rate()
}

type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	out    *os.File
	prefix string // of the EAL's runtime directory
}

func start(bin, path, role string, size, ring, cpu int, mode ...string) (*process, error) {
	fifo := fmt.Sprintf("%s.%s.in", path, role)
	if err := exec.Command("mkfifo", fifo).Run(); err != nil {
		return nil, err
	}
	// Open and silent, or testpmd's main thread spins on it.
	stdin, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	out, err := os.Create(fmt.Sprintf("%s.%s.out", path, role))
	if err != nil {
		return nil, err
	}
	buffer := max(2048, (size+128+63)&^63)
	log2 := strconv.Itoa(len(strconv.FormatInt(int64(ring), 2)) - 1)
	prefix := fmt.Sprintf("urdmabench%d%s", os.Getpid(), role)
	args := append([]string{
		"--no-huge", "--no-shconf", "-m", "512", "--no-pci", "--no-telemetry", "--lcores", fmt.Sprintf("0@%d,1@%d", cpu, cpu),
		"--file-prefix=" + prefix,
		fmt.Sprintf("--vdev=net_memif0,role=%s,id=0,socket=%s,socket-abstract=no,rsize=%s,bsize=%d", role, path, log2, buffer),
		"--", "--auto-start", "--total-num-mbufs=8192", "--no-flush-rx", fmt.Sprintf("--mbuf-size=%d", buffer+128),
	}, mode...)
	p := &process{cmd: exec.Command(bin, args...), stdin: stdin, out: out, prefix: prefix}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, out, out
	return p, p.cmd.Start()
}

func (p *process) stop() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
	p.stdin.Close()
	p.out.Close()
	for _, dir := range []string{"/var/run", os.Getenv("XDG_RUNTIME_DIR"), "/tmp"} {
		os.Remove(filepath.Join(dir, "dpdk", p.prefix)) // the EAL leaves it, empty
	}
}

func waitFor(path string) error {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Lstat(path); err == nil {
			return nil
		}
	}
	return fmt.Errorf("testpmd made no socket %s", path)
}

var rxRate = regexp.MustCompile(`Rx-pps:\s+(\d+)`)

// rate is the last rate testpmd printed.
func (p *process) rate() (float64, error) {
	b, err := os.ReadFile(p.out.Name())
	if err != nil {
		return 0, err
	}
	var rates []float64
	for _, m := range rxRate.FindAllSubmatch(b, -1) {
		if r, err := strconv.ParseFloat(string(m[1]), 64); err == nil && r > 0 {
			rates = append(rates, r)
		}
	}
	if len(rates) == 0 {
		last := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
		return 0, fmt.Errorf("testpmd received nothing; it said last: %s", strings.TrimSpace(string(last[len(last)-1])))
	}
	return rates[len(rates)-1], nil
}
