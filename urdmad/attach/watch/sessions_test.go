package watch

import (
	"urdma/urdmad/control"
	"urdma/urdmad/core/engine"
	"urdma/urdmad/core/qp"
)

// sessionOf makes the session of a process of a user.
func sessionOf(uid, pid int) *control.Session {
	x := new(control.Session)
	x.Owner.UID, x.Owner.PID = uid, pid
	return x
}

// watched makes a client of that session at a worker, as the worker's engine has it.
func watched(x *control.Session, w *worker) (*engine.Client, *client) {
	c := &client{watch: &Watch{}, x: x, w: w}
	return &engine.Client{Client: qp.Client{Watch: c}}, c
}
