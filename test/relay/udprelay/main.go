// Command udprelay runs a relay (package relay) until it gets SIGTERM or SIGINT, and then prints its counts as one
// line of JSON.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"urdma/test/relay"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "udprelay:", err)
		os.Exit(1)
	}
}

func run() error {
	var f relay.Fate
	flag.Float64Var(&f.Loss, "loss", 0, "`probability` of a datagram's loss")
	flag.Float64Var(&f.Duplicate, "duplicate", 0, "`probability` of a second copy")
	flag.Float64Var(&f.Reorder, "reorder", 0, "`probability` of coming later than others")
	flag.DurationVar(&f.Delay, "delay", 0, "`time` that every datagram takes")
	flag.DurationVar(&f.Late, "late", relay.DefaultLate, "`time` that a reordered one takes more")
	flag.BoolVar(&f.FirstOnly, "first-only", false, "of datagrams that come joined only the first goes on")
	flag.Uint64Var(&f.Seed, "seed", 1, "where chance comes from")
	flag.Parse()
	var ends [2]relay.End
	if flag.NArg() != len(ends) {
		return fmt.Errorf("expected SOCKET=HOST twice, each an address and port, found %q", flag.Args())
	}
	for i := range ends {
		if err := parseEnd(&ends[i], flag.Arg(i)); err != nil {
			return err
		}
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	r, err := relay.Start(ends[0], ends[1], f)
	if err != nil {
		return err
	}
	fmt.Println(relay.Ready)
	<-stop
	if err := r.Close(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r.Counts())
}

func parseEnd(e *relay.End, text string) (err error) {
	socket, host, _ := strings.Cut(text, "=")
	if e.Socket, err = netip.ParseAddrPort(socket); err != nil {
		return err
	}
	e.Host, err = netip.ParseAddrPort(host)
	return err
}
