package engine

import "urdma/urdmad/clock"

// SetTimer has t run on the worker's thread; Never stops it.
func (e *Engine) SetTimer(t *clock.Timer, at Time) { e.timers.Set(t, at) }

// hasten has t run no later than at.
func (e *Engine) hasten(t *clock.Timer, at Time) { e.timers.Hasten(t, at) }
