// Ping is a server and a client that use RDMA through package verbs: messages in both directions, then an RDMA
// Write into memory that the server offers and an RDMA Read of the same memory. Both check every byte.
//
//	ping -listen :7474
//	ping 198.18.0.1:7474
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"urdma/verbs"
)

const offered = 1 << 20 // bytes of memory that the server offers

// putRemote encodes the address and key of the server's memory for the accept's private data.
func putRemote(r verbs.Remote) []byte {
	b := binary.BigEndian.AppendUint64(nil, r.Addr)
	return binary.BigEndian.AppendUint32(b, r.RKey)
}

func getRemote(b []byte) (verbs.Remote, error) {
	if len(b) < 12 {
		return verbs.Remote{}, fmt.Errorf("the server named no memory: %d bytes of private data", len(b))
	}
	return verbs.Remote{Addr: binary.BigEndian.Uint64(b), RKey: binary.BigEndian.Uint32(b[8:])}, nil
}

// fill and check use a data pattern that shows misplaced bytes: byte i of message n.
func fill(b []byte, n int) {
	for i := range b {
		b[i] = byte(n*167 + i*13 + i>>8)
	}
}

func check(b []byte, n int) error {
	for i := range b {
		if want := byte(n*167 + i*13 + i>>8); b[i] != want {
			return fmt.Errorf("message %d, byte %d of %d: got 0x%02x, expected 0x%02x", n, i, len(b), b[i], want)
		}
	}
	return nil
}

func main() {
	listen := flag.String("listen", "", "serve at this host:port")
	once := flag.Bool("once", false, "serve one client and end")
	count := flag.Int("n", 1000, "messages to and fro")
	size := flag.Int("size", 64, "bytes of a message")
	spin := flag.Duration("spin", 100*time.Microsecond, "poll for this long before sleeping")
	flag.Parse()
	if *size < 0 || *size > offered || *listen == "" && flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: ping -listen HOST:PORT | ping HOST:PORT")
		flag.PrintDefaults()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *listen != "" {
		err = serve(ctx, *listen, *once, *spin)
	} else {
		err = ping(ctx, flag.Arg(0), *count, *size, *spin)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
		os.Exit(1)
	}
}
