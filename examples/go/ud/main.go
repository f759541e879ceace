// Ud is a server and a client that exchange datagrams. Over TCP the server sends the destination: the GID and
// number of its queue pair, and the Q_Key. It returns each datagram to its sender, and the client checks every
// byte. Datagrams may be lost: then the client asks again.
//
//	ud -listen :7477
//	ud -n 1000 198.18.0.1:7477
//
// HOST:PORT is a TCP address, which need not belong to urdma.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"urdma/verbs"
)

// fill and check use a data pattern that shows misplaced bytes: byte i of message n.
func fill(b []byte, n uint32) {
	for i := range b {
		b[i] = byte(int(n)*167 + i*13 + i>>8)
	}
}

func check(b []byte, n uint32) error {
	for i := range b {
		if want := byte(int(n)*167 + i*13 + i>>8); b[i] != want {
			return fmt.Errorf("message %d, byte %d of %d: got 0x%02x, expected 0x%02x", n, i, len(b), b[i], want)
		}
	}
	return nil
}

// station is a queue pair for datagrams with the memory of its buffers.
type station struct {
	*verbs.QP
	cq     *verbs.CQ
	memory *verbs.MR // buffer n begins at n*size
	size   int       // size of a buffer in bytes: the longest datagram and the GRH in front
}

// open makes a station with n buffers and a Q_Key.
func open(device *verbs.Device, n int, qkey uint32) (*station, error) {
	s := &station{size: verbs.GRHLen + device.MaxDatagram}
	x, err := device.Open()
	if err != nil {
		return nil, err
	}
	channel, err := x.CreateCompChannel()
	if err != nil {
		return nil, err
	}
	if s.cq, err = x.CreateCQ(2*n, channel); err != nil {
		return nil, err
	}
	pd, err := x.AllocPD()
	if err != nil {
		return nil, err
	}
	if s.memory, err = pd.AllocMemory(n*s.size, verbs.LocalWrite); err != nil {
		return nil, err
	}
	if s.QP, err = pd.CreateQP(s.cq, s.cq, verbs.QPOptions{Type: verbs.UD, SendWR: n, RecvWR: n}); err != nil {
		return nil, err
	}
	return s, s.StartDatagrams(qkey)
}

// receive posts a receive into a buffer. The completion has the buffer's number as ID.
func (s *station) receive(n uint64) error {
	return s.PostRecv(&verbs.RecvWR{ID: n, SGE: []verbs.SGE{s.memory.SGE(int(n)*s.size, s.size)}})
}

// send sends the buffer's data behind the GRH, with a number in it.
func (s *station) send(n uint64, length int, number uint32, to verbs.Destination) error {
	return s.PostSend(&verbs.SendWR{ID: n, Op: verbs.OpSendWithImm, Flags: verbs.Signaled, Imm: number, To: to,
		SGE: []verbs.SGE{s.memory.SGE(int(n)*s.size+verbs.GRHLen, length)}})
}

// buffer is the memory of buffer n, with the room for the GRH.
func (s *station) buffer(n uint64) []byte { return s.memory.Bytes()[int(n)*s.size:][:s.size] }

func main() {
	listen := flag.String("listen", "", "serve at this host:port of TCP")
	clients := flag.Int("clients", 0, "serve so many clients and end; 0: until interrupted")
	count := flag.Int("n", 1000, "datagrams to and fro")
	flag.Parse()
	if *listen == "" && flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: ud -listen HOST:PORT | ud HOST:PORT")
		flag.PrintDefaults()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *listen != "" {
		err = serve(ctx, *listen, *clients)
	} else {
		err = ask(ctx, flag.Arg(0), *count)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
		os.Exit(1)
	}
}
