package main

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"urdma/inspect"
	"urdma/urdma/capture"
	"urdma/verbs/abi"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// captureOptions are the flags of urdma capture.
type captureOptions struct {
	lookOptions
	output         string
	limits         capture.Limits
	port, qp, host string
	pid            int
	snap           uint32
	ringBytes      string
	all, quiet     bool
}

func newCapture() *cobra.Command {
	o := captureOptions{ringBytes: "16MiB"}
	cmd := &cobra.Command{
		Use:   "capture -o FILE",
		Short: "write the packets of a running urdmad to a pcapng file",
		Long: "Write the packets that the ports of a running urdmad receive and send to a pcapng file, until " +
			"interrupted or a limit is reached. Messages between programs of one urdmad use no packets. When such " +
			"a work request completes, urdmad makes the packets that a wire would have carried, on an interface called " +
			"host, for the first MiB of the message at most. If urdmad can't map the memory, bytes may be " +
			"missing. Connections over TCP are not captured: their packets are the kernel's, tcpdump(8) captures them, " +
			"and Wireshark reads their iWARP.\n\nA packet that urdmad dropped or kept for later, or a duplicate, has a " +
			"comment: the reason, or the names of the counters that it changed.\n\n" +
			"urdmad's own user and root see everything; others see the connections of their own processes. Packets " +
			"that arrive faster than they can be written are missing in the capture, not in urdmad, and are counted; " +
			"--snaplen and --buffer help. Wireshark reads the file with the plugin " +
			"wireshark/trp.lua, which the package installs.",
		Example: "  urdma capture -o rping.pcapng --host :7174\n" +
			"  urdma capture -o - | dumpcap -i - -w last.pcapng -b filesize:100000 -b files:5  # the last 500 MB\n" +
			"  urdma capture -o - | tshark -X lua_script:wireshark/trp.lua -i -  # live",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addSocket(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write; - is standard output")
	f.StringVar(&o.port, "port", "", "only the port of this `NAME`")
	f.StringVar(&o.host, "host", "",
		"only connections with an end at `ADDRESS`, ADDRESS:PORT or :PORT, ours or the peer's; PORT is rdma_cm's or UDP's")
	f.StringVar(&o.qp, "qp", "", "only the queue pair of this `NUMBER`, hexadecimal as urdma show qp prints it")
	f.IntVar(&o.pid, "pid", 0, "only connections of the process `PID`")
	f.BoolVar(&o.all, "all", false, "also packets that are not for urdmad, such as the kernel's")
	f.Uint32Var(&o.snap, "snaplen", 0, "keep only the first `BYTES` of each packet (0: all)")
	f.Uint64VarP(&o.limits.Frames, "count", "c", 0, "end after `N` packets")
	f.DurationVar(&o.limits.Time, "duration", 0, "end after `TIME`, such as 10s")
	f.StringVar(&o.ringBytes, "buffer", o.ringBytes, "`SIZE` of the memory for packets that wait to be written")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print no messages on standard error")
	completeNames(cmd, &o.lookOptions)
	cmd.MarkFlagFilename("output", "pcapng") //nolint:errcheck // fails only for an unknown flag
	return cmd
}

func (o *captureOptions) run(cmd *cobra.Command) error {
	filter, err := o.check()
	if err != nil {
		return withStatus(exitUsage, err)
	}
	source, err := o.open()
	if err != nil {
		return err
	}
	defer source.Close()
	return o.follow(cmd, source, filter, "packets", func(s *inspect.Snapshot) (capture.Sink, error) {
		return capture.Open(o.output, o.section(s))
	})
}

// follow captures until it is interrupted or a limit is reached. what names the records in messages; to opens the
// sink.
func (o *captureOptions) follow(cmd *cobra.Command, source *inspect.Source, filter abi.CaptureRequest, what string,
	to func(*inspect.Snapshot) (capture.Sink, error)) error {
	snapshot, err := source.Fetch()
	if err != nil {
		return err
	}
	if filter.Device, err = o.device(snapshot); err != nil {
		return err
	}
	if filter.QPN != 0 && !slices.ContainsFunc(snapshot.QPs, func(q inspect.QP) bool { return q.QPN == filter.QPN }) {
		return fmt.Errorf("--qp is %q, and urdmad has no such queue pair, or not for you to see; urdma show qp lists them",
			o.qp)
	}
	sink, err := to(snapshot)
	if err != nil {
		return err
	}
	tell := func(format string, args ...any) {
		if !o.quiet {
			fmt.Fprintf(os.Stderr, cmd.CommandPath()+": "+format+"\n", args...)
		}
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	counts, err := capture.Run(ctx, source, filter, sink, o.limits, func() {
		tell("capturing from urdmad %d to %s; interrupt to end", snapshot.Daemon.PID, o.output)
	})
	if errors.Is(err, unix.EPIPE) {
		err = nil // the reader has closed the pipe
	}
	if refused := new(inspect.Refusal); errors.As(err, &refused) && refused.Errno == syscall.EBUSY {
		return fmt.Errorf("%w: as many captures run as urdmad allows at once", err)
	}
	if err != nil && counts.Frames == 0 && !errors.Is(err, capture.ErrGone) {
		return err
	}
	lost := ""
	if counts.Lost > 0 {
		lost = fmt.Sprintf(", %d more were lost for want of time to write them", counts.Lost)
	}
	tell("%d %s%s; urdmad's worker spent %v on them", counts.Frames, what, lost, counts.Spent.Round(time.Microsecond))
	return err
}

// check turns the flags into a filter, except for the device.
func (o *captureOptions) check() (f abi.CaptureRequest, err error) {
	switch {
	case o.output == "":
		return f, errors.New("where to? -o FILE names the file to write, -o - is standard output")
	case o.output == "-" && isTerminal(os.Stdout):
		return f, errors.New("standard output is a terminal, and pcapng is no text; -o FILE, or a pipe")
	case o.pid < 0 || o.limits.Time < 0:
		return f, fmt.Errorf("--pid is %d and --duration %v, expected none below 0", o.pid, o.limits.Time)
	}
	size, err := o.bufferSize()
	if err != nil {
		return f, err
	}
	f = abi.CaptureRequest{RingBytes: size, SnapBytes: o.snap, PID: uint32(o.pid)}
	if o.all {
		f.Flags = abi.CaptureAll
	}
	if err := o.checkHost(&f); err != nil {
		return f, err
	}
	return f, o.checkQP(&f)
}

func (o *captureOptions) bufferSize() (uint32, error) {
	size, err := humanize.ParseBytes(o.ringBytes)
	if err != nil || size < 1 || size > math.MaxUint32 {
		return 0, fmt.Errorf("--buffer is %q, expected a size of 1 to %d bytes, such as 64MiB", o.ringBytes,
			uint32(math.MaxUint32))
	}
	return uint32(size), nil
}

func (o *captureOptions) checkHost(f *abi.CaptureRequest) error {
	if o.host == "" {
		return nil
	}
	wrong := fmt.Errorf("--host is %q, expected an address, ADDRESS:PORT (one of IPv6 in brackets), or :PORT", o.host)
	host, number := o.host, ""
	if _, err := netip.ParseAddr(host); err != nil && strings.Contains(host, ":") {
		var err error
		if host, number, err = net.SplitHostPort(o.host); err != nil {
			return wrong
		}
	}
	var ip netip.Addr
	var port uint64
	var err error
	if host != "" {
		if ip, err = netip.ParseAddr(host); err != nil || ip.Zone() != "" {
			return wrong
		}
	}
	if number != "" {
		if port, err = strconv.ParseUint(number, 10, 16); err != nil || port == 0 {
			return wrong
		}
	}
	if host == "" && number == "" {
		return wrong
	}
	f.Host, err = abi.AddrFrom(netip.AddrPortFrom(ip, uint16(port)))
	return err
}

func (o *captureOptions) checkQP(f *abi.CaptureRequest) error {
	if o.qp == "" {
		return nil
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(o.qp, "0x"), 16, 24)
	if err != nil || n == 0 {
		return fmt.Errorf("--qp is %q, expected a hexadecimal number of 1 to ffffff, as urdma show qp prints it", o.qp)
	}
	f.QPN = uint32(n)
	return nil
}

func (o *captureOptions) device(s *inspect.Snapshot) (uint32, error) {
	if o.port == "" {
		return abi.NoDevice, nil
	}
	var names []string
	for i, p := range s.Ports {
		if p.Name == o.port {
			return uint32(i), nil
		}
		names = append(names, p.Name)
	}
	return 0, fmt.Errorf("--port is %q, urdmad has %s", o.port, strings.Join(names, ", "))
}

func (o *captureOptions) section(s *inspect.Snapshot) capture.Section {
	var filter []string
	for _, f := range [...]struct{ name, value string }{{"port", o.port}, {"host", o.host}, {"qp", o.qp}} {
		if f.value != "" {
			filter = append(filter, f.name+" "+f.value)
		}
	}
	if o.pid != 0 {
		filter = append(filter, fmt.Sprint("pid ", o.pid))
	}
	return capture.Section{Application: fmt.Sprintf("urdma %s, from urdmad %s", version, s.Daemon.Version),
		Filter: strings.Join(filter, " and "), SnapBytes: o.snap, Ports: s.Ports}
}
