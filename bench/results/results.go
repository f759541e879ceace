package results

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Run is one run of the bench.
type Run struct {
	Commit  string     `json:"commit"` // of the binaries measured, as urdmad --version has it
	Started time.Time  `json:"started"`
	Machine Machine    `json:"machine"`
	Rounds  int        `json:"rounds"`
	Seconds float64    `json:"seconds"` // of one measurement
	Figures []*Figure  `json:"figures"`
	Targets []Target   `json:"targets"`
	Sweeps  []Sweep    `json:"sweeps,omitempty"`
	Left    []Omission `json:"left_out,omitempty"`
}

// Machine is where it ran.
type Machine struct {
	Processor  string     `json:"processor"`
	Processors int        `json:"processors"`
	MemoryMiB  int        `json:"memory_mib"`
	Kernel     string     `json:"kernel"`
	Governor   string     `json:"governor"` // of CPU 0; empty where the kernel scales no frequency
	LoadBefore [3]float64 `json:"load_before"`
	LoadAfter  [3]float64 `json:"load_after"`
}

// Better says which of two values is the better one.
type Better string

// The two there are.
const (
	Higher Better = "higher"
	Lower  Better = "lower"
)

// Figure is one quantity, measured once a round.
type Figure struct {
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	Unit   string  `json:"unit"`
	Better Better  `json:"better"`
	Values []Value `json:"values"`
}

// Value is a figure's in one round.
type Value struct {
	Round int     `json:"round"`
	Value float64 `json:"value"`
}

// Omission is what was not measured, and why.
type Omission struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Target is what a figure should be, beside another of the same round.
type Target struct {
	Title string  `json:"title"`
	Ours  string  `json:"ours"`            // a figure's ID
	Peer  string  `json:"peer,omitempty"`  // another's; empty: Limit is in Ours' own unit
	Least float64 `json:"least,omitempty"` // the ratio, or the value, is at least this; 0: no such bound
	Most  float64 `json:"most,omitempty"`  // and at most this
	Every bool    `json:"every,omitempty"` // in every round: the median's is not enough
	// Steady asks for the least of Ours' values over the most, of all rounds.
	Steady bool `json:"steady,omitempty"`
	Asked  bool `json:"asked,omitempty"` // one of the few that users ask for
}

// Sweep is a figure over something that was varied, measured once.
type Sweep struct {
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	X      string  `json:"x"` // what was varied, with its unit
	Unit   string  `json:"unit"`
	Curves []Curve `json:"curves"`
}

// Drawn tells whether there is anything to draw.
func (s *Sweep) Drawn() bool {
	for _, c := range s.Curves {
		for _, p := range c.Points {
			if p.X > 0 && p.Y > 0 {
				return true
			}
		}
	}
	return false
}

// Curve is one line of a sweep.
type Curve struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"`
}

// Point is one of its points.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Figure returns the figure of that ID, or nil.
func (r *Run) Figure(id string) *Figure {
	for _, f := range r.Figures {
		if f.ID == id {
			return f
		}
	}
	return nil
}

// Write puts r into a file, as JSON.
func (r *Run) Write(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Read takes a run from a file that Write made.
func Read(path string) (*Run, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r Run
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &r, nil
}
