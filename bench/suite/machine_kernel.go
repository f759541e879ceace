package suite

import (
	"fmt"
	"os/exec"
	"strconv"
	"time"
)

// This file measures TCP over lo, which needs no privileges.

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
