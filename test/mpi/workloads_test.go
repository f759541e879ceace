package mpi

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"urdma/test/lab"
)

// TestNetPIPE: netpipe-openmpi's own check of the data, over the range of sizes in which openib changes its
// protocols; in long runs over all of its sizes, with its measurement.
func TestNetPIPE(t *testing.T) {
	need(t, "NPopenmpi")
	for _, wire := range []lab.Wire{lab.Loopback, lab.Memif} {
		t.Run(wire.Name, func(t *testing.T) {
			c := newCluster(t, wire)
			for _, w := range []way{private, shared} {
				netpipe(t, c, w, 128<<10, "-i", "-u", "140000", "-n", "2")
				if long {
					netpipe(t, c, w, netpipeMost, "-i")
					netpipe(t, c, w, netpipeMost)
				}
			}
			c.left(t)
		})
	}
}

// netpipeMost is NetPIPE's own largest size.
const netpipeMost = 8 << 20

// One size: its number, bytes, repetitions, and the result.
var netpipeRow = regexp.MustCompile(`(?m)^ *\d+: +(\d+) bytes +\d+ times --> +(.*)$`)

// netpipe must succeed with a size of at least most, and report success for each size.
func netpipe(t *testing.T, c *cluster, w way, most int, flags ...string) {
	t.Helper()
	before := c.sent(t)
	out, err := c.run(2, w, 10*time.Minute, append([]string{"NPopenmpi", "-o", "/dev/null"}, flags...)...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", w.name, err, lab.Tail(out, 20))
	}
	carried, last := 0, 0
	for _, row := range netpipeRow.FindAllStringSubmatch(out, -1) {
		last, _ = strconv.Atoi(row[1]) // digits only
		carried += last
		if !strings.Contains(row[2], "passed") && !strings.Contains(row[2], "Mbps") {
			t.Errorf("%s: %s", w.name, row[0])
		}
	}
	if last < most {
		t.Errorf("%s: the largest size is %d, expected were %d:\n%s", w.name, last, most, lab.Tail(out, 20))
	}
	c.carried(t, w.name, before, uint64(carried))
}

// hpccInput is hpccinf.txt, in which a value's line also says what it is for: HPL uses a grid of two by two, and the
// other benchmarks HPL's sizes.
const hpccInput = `HPLinpack benchmark input file

HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
240          Ns
1            # of NBs
32           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
2            Ps
2            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
240          values of N
0            number of additional blocking sizes for PTRANS
32           values of NB
`

// TestHPCC: the HPC Challenge benchmarks (HPL, PTRANS, RandomAccess, FFT, DGEMM,
// STREAM, b_eff) find their own results correct. There are four ranks, two on each urdmad, with openib's receive queues
// and with its shared ones disabled. It belongs to the long runs because b_eff, which measures and checks nothing, takes
// nearly all of its time. TestWays checks every byte of messages, collectives and one-sided communication, TestMixed
// ranks that share a urdmad.
func TestHPCC(t *testing.T) {
	if !long {
		t.Skip("takes minutes; make test-long")
	}
	need(t, "hpcc")
	c := newCluster(t, lab.Memif)
	for _, w := range []way{shared, private} {
		t.Run(w.name, func(t *testing.T) { hpcc(t, c, w) })
	}
	c.left(t)
}

func hpcc(t *testing.T, c *cluster, w way) {
	dir := c.hosts[0].Directory()
	result := filepath.Join(dir, "hpccoutf.txt")
	c.write(t, filepath.Join(dir, "hpccinf.txt"), hpccInput)
	_ = os.Remove(result) // the last run's, to which hpcc would append
	before := c.sent(t)
	if out, err := c.run(4, w, 10*time.Minute, "hpcc"); err != nil {
		t.Fatalf("%v\n%s", err, lab.Tail(out, 40))
	}
	text, err := os.ReadFile(result)
	if err != nil {
		t.Fatal(err)
	}
	for _, says := range []string{
		`(?m)^Success=1$`,
		`(?m)^MPIRandomAccess_Errors=0$`,
		`(?m)^MPIRandomAccess_LCG_Errors=0$`,
		`(?m)^MPIFFT_maxErr=\d\.?\d*e-1\d$`,
		`(?s)Begin of PTRANS.* [1-9]\d* tests completed and passed.* 0 tests completed and failed.*End of PTRANS`,
		`(?s)Begin of HPL section.* [1-9]\d* tests completed and passed.* 0 tests completed and failed.*End of HPL section`,
	} {
		if !regexp.MustCompile(says).Match(text) {
			t.Errorf("no %s in\n%s", says, lab.Tail(string(text), 400))
		}
	}
	c.carried(t, "hpcc", before, 10<<20)
}
