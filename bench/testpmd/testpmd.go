// Package testpmd runs dpdk-testpmd, DPDK's own measuring program, for comparison.
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
	"syscall"
	"time"
)

// Port is one end: the --vdev for DPDK, and where it runs.
type Port struct {
	Vdev string
	// Command changes a command line so that it runs in the port's network namespace; nil: no change.
	Command func(argv ...string) []string
}

// Memif measures DPDK's net_memif between two testpmds over a socket at path, one sending frames of size bytes, one
// receiving, and returns frames per second. The caller removes the files next to path afterwards.
func Memif(path string, size, ring int, seconds float64) (pps float64, err error) {
	log2 := strconv.Itoa(len(strconv.FormatInt(int64(ring), 2)) - 1)
	port := func(role string) Port {
		return Port{Vdev: fmt.Sprintf("net_memif0,role=%s,id=0,socket=%s,socket-abstract=no,rsize=%s,bsize=%d", role, path,
			log2, buffer(size))}
	}
	return Between(path, port("server"), port("client"), size, seconds)
}

// Between measures the frames of size bytes per second that one testpmd receives from another. Their output goes to
// files whose names begin with prefix; the caller removes them.
func Between(prefix string, to, from Port, size int, seconds float64) (pps float64, err error) {
	bin, err := exec.LookPath("dpdk-testpmd")
	if err != nil {
		return 0, errors.New("dpdk-testpmd (Debian package dpdk-dev) is not installed")
	}
	rx, err := start(bin, prefix+".rx", to, size, 0, "--forward-mode=rxonly", "--stats-period=1")
	if err != nil {
		return 0, err
	}
	defer rx.stop()
	if err := rx.says("Rx-pps", "statistics"); err != nil {
		return 0, err
	}
	tx, err := start(bin, prefix+".tx", from, size, 1, "--forward-mode=txonly", fmt.Sprintf("--txpkts=%d", size))
	if err != nil {
		return 0, err
	}
	defer tx.stop()
	if err := rx.receives(); err != nil {
		return 0, fmt.Errorf("%w; the sender said last: %s", err, tx.last())
	}
	time.Sleep(time.Duration((1 + seconds) * 1e9)) // in the first second frames were missing
	return rx.rate()
}

type process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	out    *os.File
	prefix string // of the EAL's runtime directory
}

// buffer is the buffer size for frames of size bytes.
func buffer(size int) int { return max(2048, (size+128+63)&^63) }

func start(bin, name string, port Port, size, cpu int, mode ...string) (*process, error) {
	fifo := name + ".in"
	if err := exec.Command("mkfifo", fifo).Run(); err != nil {
		return nil, err
	}
	// An open FIFO without data: otherwise testpmd's main thread spins on its input.
	stdin, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	out, err := os.Create(name + ".out")
	if err != nil {
		return nil, err
	}
	prefix := fmt.Sprintf("urdmabench%d%d", os.Getpid(), cpu)
	args := append([]string{bin,
		"--no-huge", "--no-shconf", "-m", "512", "--no-pci", "--no-telemetry", "--lcores", fmt.Sprintf("0@%d,1@%d", cpu, cpu),
		"--file-prefix=" + prefix, "--vdev=" + port.Vdev,
		"--", "--auto-start", "--total-num-mbufs=8192", "--no-flush-rx", fmt.Sprintf("--mbuf-size=%d", buffer(size)+128),
	}, mode...)
	if port.Command != nil {
		args = port.Command(args...)
	}
	p := &process{cmd: exec.Command(args[0], args[1:]...), stdin: stdin, out: out, prefix: prefix}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, out, out
	// The process ends with the thread that starts it, so also if the bench is killed. Therefore no goroutine of
	// the bench may end while locked to its thread.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
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

// patience is how long a testpmd may take to start.
const patience = 20 * time.Second

// says waits until testpmd has printed text.
func (p *process) says(text, what string) error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		b, err := os.ReadFile(p.out.Name())
		if err == nil {
			err = portless(string(b))
		}
		if err != nil || bytes.Contains(b, []byte(text)) {
			return err
		}
	}
	return fmt.Errorf("testpmd printed no %s; it said last: %s", what, p.last())
}

// portless returns an error, with testpmd's reason, if testpmd runs on without its port. Its later output does not
// mention that.
func portless(out string) error {
	before, _, found := strings.Cut(out, "testpmd: No probed ethernet devices")
	if !found {
		return nil
	}
	var reasons []string
	for _, line := range strings.Split(before, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "EAL: ") {
			reasons = append(reasons, line)
		}
	}
	return fmt.Errorf("testpmd has no port: %s", strings.Join(reasons, "; "))
}

// receives waits until testpmd has reported frames.
func (p *process) receives() (err error) {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err = p.rate(); err == nil {
			return nil
		}
	}
	return err
}

// last is the last line that testpmd printed, or why it has no port.
func (p *process) last() string {
	b, _ := os.ReadFile(p.out.Name()) // empty if the file can't be read
	if err := portless(string(b)); err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

var rxRate = regexp.MustCompile(`Rx-pps:\s+(\d+)`)

// rate is the last rate that testpmd printed.
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
		return 0, fmt.Errorf("testpmd received nothing; it said last: %s", p.last())
	}
	return rates[len(rates)-1], nil
}
