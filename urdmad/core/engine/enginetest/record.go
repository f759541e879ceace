package enginetest

import (
	"bytes"
	"testing"

	"urdma/urdmad/attach/tap"
)

// Recorder records all frames of a host.
type Recorder struct {
	Frames []Seen
	open   []int // frames that have not ended
}

// Seen is a frame and its result.
type Seen struct {
	tap.Sight
	Note string
}

// Record starts recording a host's frames.
func Record(t testing.TB, h *Host) *Recorder {
	r := &Recorder{}
	h.Do(func() { h.Tap.Add(r) })
	t.Cleanup(func() {
		if len(r.open) != 0 {
			t.Errorf("%d frames never ended", len(r.open))
		}
	})
	return r
}

// Begin implements tap.Viewer.
func (r *Recorder) Begin(s *tap.Sight) bool {
	copied := *s
	copied.Frame = bytes.Clone(s.Frame)
	r.open = append(r.open, len(r.Frames))
	r.Frames = append(r.Frames, Seen{copied, "not ended"})
	return true
}

// End implements tap.Viewer.
func (r *Recorder) End(note string) {
	last := len(r.open) - 1
	r.Frames[r.open[last]].Note = note
	r.open = r.open[:last]
}

// Went returns the frames of one direction.
func (r *Recorder) Went(out bool) (list [][]byte) {
	for _, f := range r.Frames {
		if f.Out == out && !f.Local {
			list = append(list, f.Frame)
		}
	}
	return list
}
