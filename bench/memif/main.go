package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"urdma/bench/testpmd"
)

// options are the command line; the child gets the same options and -child.
type options struct {
	seconds float64
	sizes   string
	ring    int
	testpmd bool
	child   string
	mode    string
	server  bool
	size    int
}

func main() {
	var o options
	flag.Float64Var(&o.seconds, "seconds", 2, "length of each measurement")
	flag.StringVar(&o.sizes, "sizes", "64,1500,9000", "frame sizes in bytes, Ethernet header included")
	flag.IntVar(&o.ring, "ring", 1024, "slots per ring")
	flag.BoolVar(&o.testpmd, "testpmd", true, "measure dpdk-testpmd too, if it is installed")
	flag.StringVar(&o.child, "child", "", "internal: be the peer on this socket")
	flag.StringVar(&o.mode, "mode", "", "internal: raw, copy or echo")
	flag.BoolVar(&o.server, "server", false, "internal: role of the child")
	flag.IntVar(&o.size, "size", 64, "internal: frame size")
	flag.Parse()
	log.SetFlags(0)
	if o.child != "" {
		log.Fatal(o.runChild())
	}
	if err := o.runAll(); err != nil {
		log.Fatal(err)
	}
}

func (o *options) runAll() error {
	dir, err := os.MkdirTemp("", "urdma-bench-memif")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Printf("%-28s %8s %10s %10s\n", "", "bytes", "Mpps", "Gb/s")
	for _, s := range strings.Split(o.sizes, ",") {
		size, err := strconv.Atoi(s)
		if err != nil || size < 60 || size > 9014 {
			return fmt.Errorf("size %q: 60 to 9014 bytes", s)
		}
		if err := o.measureSize(dir, size); err != nil {
			return err
		}
	}
	half, err := o.latency(filepath.Join(dir, "latency.sock"))
	if err != nil {
		return err
	}
	fmt.Printf("%-28s %8d %21v\n", "ours, half round trip", 64, half.Round(time.Nanosecond))
	return nil
}

func (o *options) measureSize(dir string, size int) error {
	for _, mode := range []string{"raw", "copy"} {
		for _, server := range []bool{true, false} {
			direction := "client to server"
			if !server {
				direction = "server to client"
			}
			path := filepath.Join(dir, fmt.Sprintf("%s%d%v.sock", mode, size, server))
			pps, err := o.oneWay(path, mode, size, server)
			if err != nil {
				return err
			}
			report("ours, "+mode+", "+direction, size, pps)
		}
	}
	if !o.testpmd {
		return nil
	}
	pps, err := testpmd.Memif(filepath.Join(dir, fmt.Sprintf("pmd%d.sock", size)), size, o.ring, o.seconds)
	if err != nil {
		fmt.Printf("%-28s %8d  %v\n", "net_memif", size, err)
		return nil
	}
	report("net_memif, testpmd", size, pps)
	return nil
}

func report(what string, size int, pps float64) {
	fmt.Printf("%-28s %8d %10.2f %10.1f\n", what, size, pps/1e6, pps*float64(size)*8/1e9)
}
