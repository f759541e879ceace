package engine_test

import (
	"bytes"
	"testing"
	"time"

	"urdma/urdmad/engine/enginetest"
	"urdma/verbs/abi"
)

// What clients of two workers send each other stays in the sender's memory until the
// receiver's worker copies it (port.Loan).

// TestPayloadTakenBack: memory that the sender has back before the receiver's worker has
// read it is not read any more, or what was read does not count.
func TestPayloadTakenBack(t *testing.T) {
	const length = 100_000
	first, later := bytes.Repeat([]byte("first"), length/5), bytes.Repeat([]byte("later"), length/5)
	for _, op := range []string{"Send", "Write", "Read"} {
		for _, how := range []string{"deregister", "error", "destroy"} {
			if op == "Read" && how != "deregister" {
				continue // a Read of memory that stays registered finds what is there
			}
			t.Run(op+"/"+how, func(t *testing.T) {
				w := enginetest.New(t, enginetest.Options{Seed: 90, Workers: true})
				a, b := w.Pair(false, nil)
				src, sink := a.Client.Register(length, enginetest.ReadWrite), b.Client.Register(length, enginetest.ReadWrite)
				copy(src.Bytes, first)
				switch op {
				case "Send":
					b.PostRecv(1, sink.SGE(0, length))
					a.Post(enginetest.Send(2), src.SGE(0, length))
				case "Write":
					a.Post(enginetest.Write(2, sink, 0), src.SGE(0, length))
				case "Read":
					b.Post(enginetest.Read(2, src, 0), sink.SGE(0, length))
					w.B.Engine.Turn(w.Now())
				}
				w.A.Engine.Turn(w.Now())
				if a.Q.SQ.Outstanding() == 0 && op != "Read" {
					t.Fatal("nothing is under way")
				}
				switch how {
				case "deregister":
					src.Deregister()
				case "error":
					if err := a.Modify(abi.QPSErr); err != nil {
						t.Fatal(err)
					}
				case "destroy":
					a.Destroy()
				}
				copy(src.Bytes, later)
				w.Pass(5 * time.Second)
				if bytes.Contains(sink.Bytes, []byte("later")) {
					t.Error("bytes written afterwards have arrived")
				}
				for _, e := range append(b.Recv.Poll(), b.Send.Poll()...) {
					if e.Status == abi.StatusSuccess && !bytes.Equal(sink.Bytes, first) {
						t.Errorf("%+v, without all of the message", e)
					}
				}
				if b.Q.State() != abi.QPSErr {
					t.Errorf("the receiver's queue pair is in state %d, expected error", b.Q.State())
				}
			})
		}
	}
}

// TestTruncatedFileOfAnotherWorker: a client that truncates a file from which another worker is
// about to copy ends itself alone.
func TestTruncatedFileOfAnotherWorker(t *testing.T) {
	const length = 1 << 16
	for _, op := range []string{"Send", "Read", "Send, captured"} {
		t.Run(op, func(t *testing.T) {
			w := enginetest.New(t, enginetest.Options{Seed: 91, Workers: true, NoCapture: op != "Send, captured"})
			a, b := w.Pair(false, nil)
			x, y := w.Pair(false, nil)
			file, sink := a.Client.RegisterFile(length, enginetest.ReadWrite), b.Client.Register(length, enginetest.ReadWrite)
			if op != "Read" {
				b.PostRecv(1, sink.SGE(0, length))
				a.Post(enginetest.Send(2), file.SGE(0, length))
			} else {
				b.Post(enginetest.Read(2, file, 0), sink.SGE(0, length))
				w.B.Engine.Turn(w.Now())
			}
			w.A.Engine.Turn(w.Now())
			if err := file.File.Truncate(4096); err != nil {
				t.Fatal(err)
			}
			w.NewTraffic(x, y, enginetest.Load{Ops: 50, MaxSize: 100000}).Run(5 * time.Second)
			w.Until("its end", 5*time.Second, func() bool { return len(a.Client.Faults) > 0 })
			if n := len(b.Client.Faults) + len(x.Client.Faults) + len(y.Client.Faults); n > 0 {
				t.Errorf("%d others were blamed", n)
			}
			a.Client.Remove(a)
			w.Until("the peer's end", 5*time.Second, func() bool { return b.Q.State() == abi.QPSErr })
			for _, e := range append(b.Recv.Poll(), b.Send.Poll()...) {
				if e.Status == abi.StatusSuccess {
					t.Errorf("%+v", e)
				}
			}
		})
	}
}
