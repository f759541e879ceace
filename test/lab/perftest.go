package lab

import (
	"fmt"
	"strconv"
	"strings"
)

// Row is one line of perftest's table: a message size, and for bandwidth programs peak and average in MB/s (of 2^20
// bytes) and million messages per second; for latency programs minimum, maximum, typical (median), average,
// deviation, 99th and 99.9th percentile in microseconds.
type Row struct {
	Bytes, Iterations int
	Values            []float64
}

// Indices of Row.Values.
const (
	BandwidthAverage = 1
	LatencyTypical   = 2
	LatencyAverage   = 3
	LatencyPercent99 = 5
)

// ParsePerftest finds the table in a perftest program's output.
func ParsePerftest(output string) ([]Row, error) {
	var rows []Row
	for _, line := range strings.Split(output, "\n") {
		if row, ok := parseRow(line); ok {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no table in perftest's output:\n%s", Tail(output, 20))
	}
	return rows, nil
}

func parseRow(line string) (Row, bool) {
	fields := strings.Fields(line)
	if len(fields) < 5 {
		return Row{}, false
	}
	var row Row
	var err error
	if row.Bytes, err = strconv.Atoi(fields[0]); err != nil {
		return Row{}, false
	}
	if row.Iterations, err = strconv.Atoi(fields[1]); err != nil {
		return Row{}, false
	}
	for _, f := range fields[2:] {
		// perftest prints "-nan" after a division by a time of 0.
		v, err := strconv.ParseFloat(strings.Replace(f, "-nan", "nan", 1), 64)
		if err != nil {
			return Row{}, false
		}
		row.Values = append(row.Values, v)
	}
	return row, true
}

// Unmeasured reports whether a perftest program ended without its table because other programs used the processor
// while it compared the cycle counter with the clock. This happens about once in a hundred runs at a load of 16. The
// transfer itself succeeded.
func Unmeasured(output string) bool { return strings.Contains(output, "Can't produce a report") }

// MeasuredTries is the number of attempts if a perftest program ends in this way.
const MeasuredTries = 5

// Perftest lists the six programs of perftest, which together issue every basic operation.
var Perftest = []string{"ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_send_bw", "ib_write_bw", "ib_read_bw"}

// takesClock reports whether clock/clock.c makes a program faster: one of perftest, or mckey, whose sender sleeps for
// three seconds.
func takesClock(word string) bool {
	return word == "mckey" || strings.HasPrefix(word, "ib_") && (strings.HasSuffix(word, "_bw") || strings.HasSuffix(word, "_lat"))
}

// PerftestPair returns one of them, connected through rdma_cm, with arguments for both sides. With -F it does not
// complain about the processor's clock.
func PerftestPair(server, client *Node, program string, args ...string) Pair {
	both := append([]string{program, "-R", "-F"}, args...)
	return Pair{ServerNode: server, ClientNode: client,
		Server: both, Client: append(append([]string{}, both...), server.Address)}
}
