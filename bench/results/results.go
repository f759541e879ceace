package results

import (
	"encoding/json"
	"os"
	"time"
)

// Run is one run of the bench.
type Run struct {
	Commit  string     `json:"commit"` // commit of the measured binaries, as in urdmad --version
	Started time.Time  `json:"started"`
	Machine Machine    `json:"machine"`
	Rounds  int        `json:"rounds"`
	Seconds float64    `json:"seconds"` // length of one measurement
	Figures []*Figure  `json:"figures"`
	Targets []Target   `json:"targets"`
	Sweeps  []Sweep    `json:"sweeps,omitempty"`
	Left    []Omission `json:"left_out,omitempty"`
}

// Machine describes the machine of a run.
type Machine struct {
	Processor  string     `json:"processor"`
	Processors int        `json:"processors"`
	MemoryMiB  int        `json:"memory_mib"`
	Kernel     string     `json:"kernel"`
	Governor   string     `json:"governor"` // of CPU 0; empty without frequency scaling
	LoadBefore [3]float64 `json:"load_before"`
	LoadAfter  [3]float64 `json:"load_after"`
}

// Better says whether larger or smaller values are better.
type Better string

// Values of Better.
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

// Value is a figure's value in one round.
type Value struct {
	Round int     `json:"round"`
	Value float64 `json:"value"`
}

// Omission names a measurement that was left out, and the reason.
type Omission struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Target is a requirement on a figure, compared with another figure of the same round.
type Target struct {
	Title string  `json:"title"`
	Ours  string  `json:"ours"`            // ID of a figure
	Peer  string  `json:"peer,omitempty"`  // ID of the other figure; empty: Least and Most are in the unit of Ours
	Least float64 `json:"least,omitempty"` // minimum of the ratio or value; 0: no bound
	Most  float64 `json:"most,omitempty"`  // maximum; 0: no bound
	// Steady compares the smallest value of Ours with the largest, over all rounds.
	Steady bool `json:"steady,omitempty"`
	Asked  bool `json:"asked,omitempty"` // one of the few that most users ask for
}

// Sweep is a figure measured once for each value of a parameter.
type Sweep struct {
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	X      string  `json:"x"` // the parameter, with its unit
	Unit   string  `json:"unit"`
	Curves []Curve `json:"curves"`
}

// Drawn reports whether there is anything to draw.
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

// Point is a point of a curve.
type Point struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Figure returns the figure with that ID, or nil.
func (r *Run) Figure(id string) *Figure {
	for _, f := range r.Figures {
		if f.ID == id {
			return f
		}
	}
	return nil
}

// Write writes r to a file, as JSON.
func (r *Run) Write(path string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
