package enginetest

import (
	"bytes"
	"testing"

	"urdma/urdmad/attach/tap"
)

// Recorder is shown the frames of a host, and keeps everything.
type Recorder struct {
	Frames []Seen
	open   []int // frames that have not ended
}

// Seen is a frame, and what became of it.
type Seen struct {
	tap.Sight
	Note string
}

// Record shows a host's frames to a Recorder from now on.
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

// Begin is tap.Viewer's.
func (r *Recorder) Begin(s *tap.Sight) bool {
	copied := *s
	copied.Frame = bytes.Clone(s.Frame)
	r.open = append(r.open, len(r.Frames))
	r.Frames = append(r.Frames, Seen{copied, "not ended"})
	return true
}

// End is tap.Viewer's.
func (r *Recorder) End(note string) {
	last := len(r.open) - 1
	r.Frames[r.open[last]].Note = note
	r.open = r.open[:last]
}

// Went are the frames that went one way.
func (r *Recorder) Went(out bool) (list [][]byte) {
	for _, f := range r.Frames {
		if f.Out == out && !f.Local {
			list = append(list, f.Frame)
		}
	}
	return list
}
