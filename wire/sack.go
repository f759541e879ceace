package wire

import "encoding/binary"

const (
	// MaxSackRuns is the largest number of runs in one sack.
	MaxSackRuns = 32
	// SackRunLen is the length of one run.
	SackRunLen = 8
)

// SackRun is a run of segments that arrived beyond a gap, from PSN First up to but not including End.
type SackRun struct {
	First PSN
	End   PSN
}

// ParseSackRuns reads b, the whole body of a sack, into dst and returns the number of runs, at most min(len(dst),
// MaxSackRuns). It checks that each run is not empty; the caller checks their order and place in the window.
func ParseSackRuns(dst []SackRun, b []byte) (int, error) {
	if len(b)%SackRunLen != 0 {
		return 0, ErrSackLen
	}
	n := len(b) / SackRunLen
	if n > min(len(dst), MaxSackRuns) {
		return 0, ErrSackCount
	}
	for i := range dst[:n] {
		r := SackRun{
			First: PSN(binary.BigEndian.Uint32(b[i*SackRunLen:])),
			End:   PSN(binary.BigEndian.Uint32(b[i*SackRunLen+4:])),
		}
		if !r.First.Before(r.End) {
			return 0, ErrSackRun
		}
		dst[i] = r
	}
	return n, nil
}

// PutSackRuns writes the runs, up to MaxSackRuns of them, and returns the number of bytes.
func PutSackRuns(b []byte, runs []SackRun) int {
	runs = runs[:min(len(runs), MaxSackRuns)]
	for i, r := range runs {
		binary.BigEndian.PutUint32(b[i*SackRunLen:], uint32(r.First))
		binary.BigEndian.PutUint32(b[i*SackRunLen+4:], uint32(r.End))
	}
	return len(runs) * SackRunLen
}
