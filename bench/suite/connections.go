package suite

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"urdma/test/lab"
)

// setUps measures how many connections per second programs make through rdma_cm: cmtime's steps from creating an id
// to the established connection.
func setUps(w lab.Wire, connections int) func(*bench) ([]float64, error) {
	return func(b *bench) ([]float64, error) {
		hosts, err := b.places.join(w)
		if err != nil {
			return nil, err
		}
		count := []string{"-c", strconv.Itoa(connections)}
		p := lab.Pair{ServerNode: hosts.a, Server: append([]string{"cmtime", "-b", hosts.a.Address}, count...)}
		server, err := p.StartServer()
		if err != nil {
			return nil, err
		}
		defer server.Kill() // it serves without end
		out, err := hosts.b.Run(time.Minute, append([]string{"cmtime", "-s", hosts.a.Address}, count...)...)
		if err != nil {
			return nil, err
		}
		return parseCmtime(out, connections)
	}
}

var (
	cmtimeRow   = regexp.MustCompile(`(?m)^([a-z ]+?) *: +([0-9.]+)`)
	cmtimeSteps = []string{"create id", "resolve addr", "resolve route", "create qp", "connect"}
)

// parseCmtime adds up the first column, the ms that all connections took together in each step.
func parseCmtime(out string, connections int) ([]float64, error) {
	took := map[string]float64{}
	for _, m := range cmtimeRow.FindAllStringSubmatch(out, -1) {
		took[m[1]], _ = strconv.ParseFloat(m[2], 64) // the pattern matches digits
	}
	total := 0.0
	for _, step := range cmtimeSteps {
		ms, ok := took[step]
		if !ok {
			return nil, fmt.Errorf("cmtime printed no row %q:\n%s", step, lab.Tail(out, 12))
		}
		total += ms
	}
	if total == 0 {
		return nil, fmt.Errorf("cmtime's steps took no time:\n%s", lab.Tail(out, 12))
	}
	return []float64{float64(connections) / (total / 1e3)}, nil
}
