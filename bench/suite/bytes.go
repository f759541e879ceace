package suite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The speed of moving bytes without any protocol, measured by bench/bytes: a core each for sender and
// receiver, without posting, polling, checking or answers. This is an upper bound on the machine.

// bytesProgram is the path of that program.
func (b *bench) bytesProgram() (string, error) {
	program := filepath.Join(b.Build, "bytes")
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return "", errors.New("bench/bytes is not built (make -C bench/bytes)")
	}
	return program, nil
}

// bareFrames measures two threads that copy frames of size bytes into and out of shared memory: Gb/s.
func bareFrames(size int) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		program, err := b.bytesProgram()
		if err != nil {
			return nil, err
		}
		out, err := exec.Command(program, "frames", strconv.Itoa(size), b.shortMilliseconds()).Output()
		if err != nil {
			return nil, fmt.Errorf("bytes frames: %w", err)
		}
		return parseBytes(string(out))
	}
}

// bareDatagrams measures datagrams of the MTU's length over veth. The kernel splits large sends into datagrams and
// joins received ones. The result is Gb/s of payload copied to its place.
func bareDatagrams(mtu int) func(*bench) ([]float64, error) {
	const ipAndUDP = 28
	return func(b *bench) ([]float64, error) {
		program, err := b.bytesProgram()
		if err != nil {
			return nil, err
		}
		k, err := b.places.kernel(mtu)
		if err != nil {
			return nil, err
		}
		const port = "7999"
		out, err := k.Run(time.Minute, []string{program, "send", k.Address, port},
			[]string{program, "receive", k.Address, port, strconv.Itoa(mtu - ipAndUDP), b.shortMilliseconds()})
		if err != nil {
			return nil, fmt.Errorf("bytes receive: %w: %s", err, out)
		}
		return parseBytes(out)
	}
}

func (b *bench) shortMilliseconds() string { return strconv.Itoa(int(b.short().Milliseconds())) }

func parseBytes(out string) ([]float64, error) {
	rate, err := strconv.ParseFloat(strings.TrimSpace(out), 64)
	if err != nil || rate <= 0 {
		return nil, fmt.Errorf("bytes printed no rate: %q", out)
	}
	return []float64{rate}, nil
}
