package lab

import (
	"fmt"
	"strconv"
	"strings"
)

// Row is one line of perftest's table: a message size and, for the bandwidth
// programs, peak and average in MB/s (of 2^20 bytes) and million messages a
// second; for the latency programs, microseconds: minimum, maximum, typical
// (median), average, deviation, 99 % and 99.9 % percentile.
type Row struct {
	Bytes, Iterations int
	Values            []float64
}

// Columns of Row.Values.
const (
	BandwidthAverage = 1
	LatencyTypical   = 2
	LatencyAverage   = 3
	LatencyPercent99 = 5
)

// ParsePerftest finds the table in what a perftest program printed.
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
		// perftest prints "-nan" where it divided by a clock that stood still.
		v, err := strconv.ParseFloat(strings.Replace(f, "-nan", "nan", 1), 64)
		if err != nil {
			return Row{}, false
		}
		row.Values = append(row.Values, v)
	}
	return row, true
}

// Unmeasured reports whether a perftest program ended without its table because others
// took the processor while it compared the cycle counter with the clock: about one in a
// hundred does at a load of 16. The transfer itself went well.
func Unmeasured(output string) bool { return strings.Contains(output, "Can't produce a report") }

// MeasuredTries is how often a perftest program is run that ends so.
const MeasuredTries = 5

// Perftest is the six programs of perftest that issue every basic operation.
var Perftest = []string{"ib_send_lat", "ib_write_lat", "ib_read_lat", "ib_send_bw", "ib_write_bw", "ib_read_bw"}

// takesClock tells whether a word names a program that clock/clock.c makes faster: one of perftest's, or mckey, whose
// sender sleeps for three seconds.
func takesClock(word string) bool {
	return word == "mckey" || strings.HasPrefix(word, "ib_") && (strings.HasSuffix(word, "_bw") || strings.HasSuffix(word, "_lat"))
}

// PerftestPair is one of them, connected through rdma_cm, with arguments for
// both sides. -F keeps it from complaining of the processor's clock.
func PerftestPair(server, client *Node, program string, args ...string) Pair {
	both := append([]string{program, "-R", "-F"}, args...)
	return Pair{ServerNode: server, ClientNode: client,
		Server: both, Client: append(append([]string{}, both...), server.Address)}
}
