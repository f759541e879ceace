package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"urdma/dpdk/memif"
	"urdma/dpdk/port"
)

const (
	burst = 32
	// The best window counts: other load on the machine can only slow a window down.
	window   = 50 * time.Millisecond
	linkWait = 10 * time.Second
)

// pin binds this thread to a core, if that core exists.
func pin(cpu int) {
	runtime.LockOSThread()
	var set unix.CPUSet
	set.Set(cpu)
	unix.SchedSetaffinity(0, &set)
}

func (o *options) open(path string, server bool, size int) (port.Port, error) {
	p, err := memif.Open(memif.Options{
		Name: "bench", SocketPath: path, Server: server,
		MTU: max(1500, size-port.EtherHeaderLen), RingSize: o.ring,
	})
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(linkWait); !p.Link(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.Close()
			return nil, fmt.Errorf("no link on %s", path)
		}
	}
	return p, nil
}

// startChild runs the peer in a process of its own.
func (o *options) startChild(path, mode string, server bool, size int) (*exec.Cmd, error) {
	cmd := exec.Command(os.Args[0], "-child", path, "-mode", mode, "-size", strconv.Itoa(size),
		"-ring", strconv.Itoa(o.ring), fmt.Sprintf("-server=%v", server))
	cmd.Stderr = os.Stderr
	return cmd, cmd.Start()
}

func stopChild(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}

// runChild sends or echoes until it is killed; returning is always an error.
func (o *options) runChild() error {
	pin(1)
	p, err := o.open(o.child, o.server, o.size)
	if err != nil {
		return err
	}
	if o.mode == "echo" {
		echo(p)
	} else {
		send(p, o.size, o.mode == "copy")
	}
	return errors.New("link lost") // the parent ended without killing us
}

func send(p port.Port, size int, full bool) {
	source := make([]byte, size)
	for i := range source {
		source[i] = byte(i)
	}
	q, pk := p.Queue(0), make([]port.Packet, burst)
	for p.Link() {
		n := q.Alloc(pk)
		for i := range pk[:n] {
			pk[i].Data = pk[i].Data[:size]
			if full {
				copy(pk[i].Data, source)
			} else {
				pk[i].Data[0] = byte(i)
			}
		}
		for left := pk[:n]; len(left) > 0; {
			left = left[q.Tx(left):]
		}
		q.Flush()
	}
}

func echo(p port.Port) {
	q := p.Queue(0)
	in, out := make([]port.Packet, burst), make([]port.Packet, burst)
	for p.Link() {
		n := q.Rx(in)
		if n == 0 {
			continue
		}
		k := q.Alloc(out[:n])
		for i := range k {
			out[i].Data = out[i].Data[:copy(out[i].Data, in[i].Data)]
		}
		q.Tx(out[:k])
		q.Flush()
		q.Free(in[:n])
	}
}

// oneWay returns the frames per second that arrive here from a child.
func (o *options) oneWay(path, mode string, size int, server bool) (pps float64, err error) {
	child, err := o.startChild(path, mode, !server, size)
	if err != nil {
		return 0, err
	}
	defer stopChild(child)
	pin(0)
	p, err := o.open(path, server, size)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	for end := time.Now().Add(time.Duration(o.seconds * 1e9)); time.Now().Before(end); {
		began := time.Now()
		n := drain(p, size, mode == "copy", window)
		pps = max(pps, float64(n)/time.Since(began).Seconds())
	}
	return pps, nil
}

func drain(p port.Port, size int, full bool, d time.Duration) (n int) {
	sink := make([]byte, size)
	q, pk := p.Queue(0), make([]port.Packet, burst)
	for end := time.Now().Add(d); time.Now().Before(end); {
		for range 100 {
			k := q.Rx(pk)
			for i := range pk[:k] {
				if full {
					copy(sink, pk[i].Data)
				} else {
					sink[0] += pk[i].Data[0]
				}
			}
			q.Free(pk[:k])
			n += k
		}
	}
	return n
}

// latency is half a round trip with both sides polling.
func (o *options) latency(path string) (time.Duration, error) {
	child, err := o.startChild(path, "echo", false, 64)
	if err != nil {
		return 0, err
	}
	defer stopChild(child)
	pin(0)
	p, err := o.open(path, true, 64)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	best := time.Hour
	for end := time.Now().Add(time.Duration(o.seconds * 1e9)); time.Now().Before(end); {
		const rounds = 1000
		began := time.Now()
		for range rounds {
			if err := roundTrip(p); err != nil {
				return 0, err
			}
		}
		best = min(best, time.Since(began)/rounds/2)
	}
	return best, nil
}

func roundTrip(p port.Port) error {
	q := p.Queue(0)
	var pk [1]port.Packet
	if q.Alloc(pk[:]) == 0 {
		return errors.New("no buffer")
	}
	pk[0].Data = pk[0].Data[:64]
	q.Tx(pk[:])
	q.Flush()
	for q.Rx(pk[:]) == 0 {
		if !p.Link() {
			return errors.New("link lost")
		}
	}
	q.Free(pk[:])
	return nil
}
