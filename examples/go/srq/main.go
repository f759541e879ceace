// Srq is a server whose clients share one pool of receive buffers: the number of receives does not grow with the
// number of clients. It answers each message with the sum of its bytes, which the clients check.
//
//	srq -listen :7476
//	srq -n 1000 198.18.0.1:7476
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

const longest = 4096 // longest message in bytes

// sum is the answer to a message: the sum of its bytes.
func sum(b []byte) (total uint64) {
	for _, v := range b {
		total = total*31 + uint64(v)
	}
	return total
}

func main() {
	listen := flag.String("listen", "", "serve at this host:port")
	clients := flag.Int("clients", 0, "serve so many clients and end; 0: until interrupted")
	pool := flag.Int("pool", 32, "receive buffers that all clients share")
	count := flag.Int("n", 1000, "messages to send")
	flag.Parse()
	if *listen == "" && flag.NArg() != 1 || *pool < 1 {
		fmt.Fprintln(os.Stderr, "usage: srq -listen HOST:PORT | srq HOST:PORT")
		flag.PrintDefaults()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *listen != "" {
		err = serve(ctx, *listen, *clients, *pool)
	} else {
		err = ask(ctx, flag.Arg(0), *count)
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
		os.Exit(1)
	}
}
