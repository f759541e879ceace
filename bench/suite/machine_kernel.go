package suite

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// This file measures two programs of one machine without RDMA and without a network: TCP over lo and unix sockets.
// memif and loopback are compared with these figures. No privileges are needed.

// iperf3Here measures iperf3 over lo, one stream.
func iperf3Here(b *bench) ([]float64, error) {
	out, err := here(b, []string{"iperf3", "-s", "-1", "-B", "127.0.0.1"},
		[]string{"iperf3", "-c", "127.0.0.1", "-J", "-t", strconv.Itoa(b.wholeSeconds())})
	if err != nil {
		return nil, err
	}
	return parseIperf3(out)
}

// sockperfHere measures half a round trip of 14 bytes over lo.
func sockperfHere(b *bench) ([]float64, error) {
	out, err := here(b, []string{"sockperf", "sr", "-i", "127.0.0.1", "--tcp"},
		[]string{"sockperf", "ping-pong", "-i", "127.0.0.1", "--tcp", "-m", "14", "-t", oneSecond})
	if err != nil {
		return nil, err
	}
	return parseSockperf(out)
}

// here runs a server and its client.
func here(b *bench, server, client []string) (string, error) {
	if _, err := exec.LookPath(server[0]); err != nil {
		return "", fmt.Errorf("%s is not installed", server[0])
	}
	l, err := b.places.newLab()
	if err != nil {
		return "", err
	}
	return l.OneHost().Run(time.Minute, server, client)
}

// unixPair is a connected pair of stream sockets.
func unixPair() ([2]int, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	return fds, os.NewSyscallError("socketpair", err)
}

// everyRead reads from a socket until its end and passes each read to fn. It runs on a thread of its own, which
// blocks in the kernel as a program's thread does.
func everyRead(fd, size int, fn func(n int)) (ended chan error) {
	ended = make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread() // otherwise the thread would end, and with it the programs that it started
		buffer := make([]byte, size)
		for {
			n, err := syscall.Read(fd, buffer)
			if n <= 0 || err != nil {
				ended <- os.NewSyscallError("read", err)
				return
			}
			fn(n)
		}
	}()
	return ended
}

// unixStream measures writes of size bytes from one thread to another over a unix socket, in Gb/s.
func unixStream(size int) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		fds, err := unixPair()
		if err != nil {
			return nil, err
		}
		received := 0
		ended := everyRead(fds[1], size, func(n int) { received += n })
		buffer := make([]byte, size)
		start := time.Now()
		for err == nil && time.Since(start) < b.short() {
			_, err = syscall.Write(fds[0], buffer)
		}
		syscall.Close(fds[0]) // ends the reader
		if e := <-ended; err == nil {
			err = e
		}
		syscall.Close(fds[1])
		return []float64{float64(received) * 8 / 1e9 / time.Since(start).Seconds()}, err
	}
}

// unixTrip measures half a round trip of 14 bytes between two threads over a unix socket, in µs: median and 99th
// percentile.
func unixTrip(b *bench) ([]float64, error) {
	fds, err := unixPair()
	if err != nil {
		return nil, err
	}
	message := make([]byte, 14)
	// if the echo fails, the other side's read ends
	ended := everyRead(fds[1], len(message), func(n int) { _, _ = syscall.Write(fds[1], message[:n]) })
	var times []float64
	answer := make([]byte, len(message))
	for end := time.Now().Add(time.Duration(b.Seconds * float64(time.Second))); err == nil && time.Now().Before(end); {
		start := time.Now()
		if _, err = syscall.Write(fds[0], message); err == nil {
			_, err = syscall.Read(fds[0], answer)
		}
		times = append(times, float64(time.Since(start))/2e3)
	}
	syscall.Close(fds[0])
	if e := <-ended; err == nil {
		err = e
	}
	syscall.Close(fds[1])
	slices.Sort(times)
	return []float64{times[len(times)/2], times[len(times)*99/100]}, err
}
