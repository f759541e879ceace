package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"urdma/urdma/private"
)

// runOptions are the flags of urdma run.
type runOptions struct {
	execOptions
	udp, tcp string
	config   string
	hosts    int
	timeout  time.Duration // for each program; 0: none
	late     atomic.Bool   // a program was stopped because of it
}

func newRun() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [flags] -- PROGRAM [ARGUMENT...]",
		Short: "run a program on a urdmad of its own",
		Long: "Start a private urdmad, wait until it is ready, run PROGRAM on its RDMA devices as urdma exec does, " +
			"and stop the urdmad. The port is loopback, with the addresses 198.18.0.1 and 127.0.0.1, unless --udp, " +
			"--tcp or --config says otherwise. Child processes of PROGRAM use this urdmad, too, including urdma " +
			"status and other urdma commands.\n\nSignals are passed on, and the exit status is the program's, or " +
			"128 + N after signal N. If urdma run is killed, urdmad ends, too. Nothing remains afterwards, and " +
			"several may run at once; with --udp and --tcp each needs its own port number (--udp=PORT).\n\n--hosts " +
			"2 runs two programs on two urdmads joined by memif: SERVER on the host 198.18.0.1, and, once it " +
			"listens, CLIENT on the host 198.18.0.2. The programs' own TCP connections to these addresses work, too. " +
			"When the client ends, the server has 10 seconds to end before it is stopped. The exit status is the " +
			"client's, or if that is 0 the server's.",
		Example: "  urdma run -- make check\n" +
			"  urdma run -- ibv_devinfo\n" +
			"  urdma run --hosts 2 -- rping -s -C 5 :: rping -c -a 198.18.0.1 -C 5 -v",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return withStatus(exitExec, errors.New("no program given; use: urdma run [flags] -- PROGRAM [ARGUMENT...]"))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return o.run(args) },
	}
	o.addTo(cmd)
	f := cmd.Flags()
	f.StringVar(&o.udp, "udp", "", "reach other machines too, as urdmad --udp[=`PORT`] does")
	f.StringVar(&o.tcp, "tcp", "", "reach other machines too, as urdmad --tcp[=`PORT`] does")
	for _, name := range []string{"udp", "tcp"} {
		f.Lookup(name).NoOptDefVal = "30035"
	}
	f.DurationVar(&o.timeout, "timeout", 0,
		"stop a program, and what it has started, that still runs after `TIME` (90s, 5m); the exit status is then 124")
	f.StringVarP(&o.config, "config", "c", "",
		"start urdmad with the configuration `FILE`, see urdma.json(5); its socket is a private one all the same")
	f.IntVar(&o.hosts, "hosts", 1, "`NUMBER` of urdmads, 1 or 2; with 2: SERVER [ARGUMENT...] :: CLIENT [ARGUMENT...]")
	f.Lookup("log").Usage = "show what urdmad logs, and let the library say what it does (URDMA_LOG=1)"
	cmd.MarkFlagsMutuallyExclusive("udp", "tcp", "config")
	for _, name := range []string{"udp", "tcp", "config"} {
		cmd.MarkFlagsMutuallyExclusive("hosts", name)
	}
	return cmd
}

// between separates the commands of two hosts.
const between = "::"

// commands returns the program and arguments for each host.
func (o *runOptions) commands(args []string) (list [][]string, err error) {
	switch o.hosts {
	case 1:
		return [][]string{args}, nil
	case 2:
		i := slices.Index(args, between)
		if i < 1 || i == len(args)-1 {
			return nil, errors.New("--hosts 2 needs two programs: urdma run --hosts 2 -- SERVER [ARGUMENT...] :: CLIENT " +
				"[ARGUMENT...]")
		}
		return [][]string{args[:i], args[i+1:]}, nil
	}
	return nil, fmt.Errorf("--hosts is %d, allowed: 1, 2", o.hosts)
}

func (o *runOptions) run(args []string) error {
	commands, err := o.commands(args)
	if err != nil {
		return err
	}
	lib, err := o.library()
	if err != nil {
		return err
	}
	var paths []string
	for _, c := range commands {
		path, err := preloadable(c[0], lib)
		if err != nil {
			return err
		}
		paths = append(paths, path)
	}
	urdmad, err := findUrdmad()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // children end with this thread
	s := newSignals()
	status, err := o.within(s, urdmad, func(daemons []*private.Daemon) (syscall.WaitStatus, error) {
		return o.programs(s, daemons, lib, paths, commands)
	})
	if err != nil {
		return err
	}
	if o.late.Load() {
		return withStatus(exitTimeout, fmt.Errorf("stopped after %v, the --timeout", o.timeout))
	}
	end(status)
	return nil
}

// findUrdmad looks where builds and packages install urdmad.
func findUrdmad() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot find urdma's own file: %w", err)
	}
	dir := filepath.Dir(self)
	for _, path := range []string{filepath.Join(dir, "urdmad"), filepath.Join(dir, "..", "sbin", "urdmad")} {
		if found, err := exec.LookPath(path); err == nil {
			return found, nil
		}
	}
	path, err := exec.LookPath("urdmad")
	if err != nil {
		return "", withStatus(exitNotFound, fmt.Errorf("no urdmad in %s, %s or PATH", dir, filepath.Join(dir, "..", "sbin")))
	}
	return path, nil
}

// within calls fn while the urdmads run.
func (o *runOptions) within(s *signals, urdmad string,
	fn func([]*private.Daemon) (syscall.WaitStatus, error)) (status syscall.WaitStatus, err error) {
	dir, err := private.NewDirectory()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, dir.Remove()) }()
	var daemons []*private.Daemon
	for host := range o.hosts {
		args, err := o.daemonArgs(dir.Path, host)
		if err != nil {
			return 0, err
		}
		d, err := private.Start(urdmad, dir, fmt.Sprintf("urdmad%d", host+1), o.log, args...)
		if err != nil {
			return 0, err
		}
		defer d.Stop()
		daemons = append(daemons, d)
	}
	if err := ready(daemons, s); err != nil {
		return 0, err
	}
	if s.any() { // before there was a program to receive it
		return syscall.WaitStatus(s.first()), nil
	}
	status, err = fn(daemons)
	for _, d := range daemons {
		if lost := d.Err(); lost != nil && err == nil {
			fmt.Fprintln(os.Stderr, "urdma run:", lost)
			if status == 0 {
				err = errors.New("urdmad ended before the program")
			}
		}
	}
	return status, err
}

// ready waits until all urdmads are ready, one of them has ended, or a signal comes.
func ready(daemons []*private.Daemon, s *signals) error {
	over := func() bool {
		return s.any() || slices.ContainsFunc(daemons, func(d *private.Daemon) bool { return !d.Running() })
	}
	for _, d := range daemons {
		if err := d.Ready(len(daemons) > 1, over); err != nil {
			return err
		}
	}
	for _, d := range daemons {
		if err := d.Err(); err != nil {
			return err
		}
	}
	return nil
}

// daemonArgs writes the configuration of a host, if it needs one.
func (o *runOptions) daemonArgs(dir string, host int) ([]string, error) {
	switch {
	case o.udp != "":
		return []string{"--udp=" + o.udp}, nil
	case o.tcp != "":
		return []string{"--tcp=" + o.tcp}, nil
	case o.config != "":
		return []string{"--config", o.config}, nil
	case o.hosts == 1:
		return nil, nil
	}
	file := filepath.Join(dir, fmt.Sprintf("host%d.json", host+1))
	text := fmt.Sprintf(`{ "ports": [ { "vdev": "memif,role=%s,socket=%s/wire.sock", "ipv4_address": "%s/24", `+
		`"mtu": 9000 } ] }`,
		[]string{"server", "client"}[host], dir, hostAddress(host))
	return []string{"--config", file}, os.WriteFile(file, []byte(text), 0o600)
}

func hostAddress(host int) string { return fmt.Sprintf("198.18.0.%d", host+1) }

// programs runs each command on its urdmad.
func (o *runOptions) programs(s *signals, daemons []*private.Daemon, lib string, paths []string,
	commands [][]string) (syscall.WaitStatus, error) {
	var started []*private.Program
	start := func(host int, stdin *os.File) error {
		its := o.execOptions
		its.socket = daemons[host].Socket
		env, err := its.environment(os.Environ(), lib, commands[host])
		if err != nil {
			return err
		}
		if o.hosts > 1 {
			env = setenv(setenv(env, "URDMA_NAMES", "1"), "URDMA_LOCAL_ADDRESSES", hostAddress(0)+","+hostAddress(1))
		}
		p, err := private.StartProgram(paths[host], commands[host], env, stdin)
		if err != nil {
			return withStatus(exitCannotRun, fmt.Errorf("cannot run %s: %w", paths[host], err))
		}
		started = append(started, p)
		s.passTo(p)
		if o.timeout > 0 {
			time.AfterFunc(o.timeout, func() {
				if p.Running() {
					o.late.Store(true)
					p.Stop()
				}
			})
		}
		return nil
	}
	if o.hosts == 1 {
		if err := start(0, os.Stdin); err != nil {
			return 0, err
		}
		<-started[0].Ended()
		return started[0].Status(), nil
	}
	if err := start(0, nil); err != nil {
		return 0, err
	}
	started[0].Listens(daemons[0], s.any)
	if err := start(1, os.Stdin); err != nil {
		started[0].Signal(unix.SIGTERM)
		started[0].Finish()
		return 0, err
	}
	return both(started[0], started[1]), nil
}

// both waits until a server and its client have ended. After a while it stops a client whose server has failed, and
// a server whose client has ended.
func both(server, client *private.Program) syscall.WaitStatus {
	select {
	case <-client.Ended():
	case <-server.Ended():
		if status := server.Status(); status != 0 {
			if client.Finish() {
				return status
			}
		}
		<-client.Ended()
	}
	stopped := server.Finish()
	if status := client.Status(); status != 0 || stopped {
		return status
	}
	return server.Status()
}

// signals are the signals that a user or a supervisor sends to a command.
type signals struct {
	got    atomic.Int32 // the first one
	coming chan os.Signal
	to     chan *private.Program
}

func newSignals() *signals {
	s := &signals{coming: make(chan os.Signal, 16), to: make(chan *private.Program)}
	for _, one := range []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2} {
		if !signal.Ignored(one) { // nohup(1) ignores it, for the program, too
			signal.Notify(s.coming, one)
		}
	}
	go s.pass()
	return s
}

func (s *signals) any() bool { return s.got.Load() != 0 }

func (s *signals) first() syscall.Signal { return syscall.Signal(s.got.Load()) }

// passTo passes further signals to a program, and the one that came before it was started.
func (s *signals) passTo(p *private.Program) { s.to <- p }

func (s *signals) pass() {
	var programs []*private.Program
	for {
		select {
		case p := <-s.to:
			programs = append(programs, p)
			if s.any() {
				p.Signal(s.first())
			}
		case one := <-s.coming:
			s.got.CompareAndSwap(0, int32(one.(syscall.Signal)))
			if fromTerminal(one) {
				continue
			}
			for _, p := range programs {
				p.Signal(one)
			}
		}
	}
}

// fromTerminal reports whether the programs, which are in our process group, have received a signal as well.
// Nothing says who sent a signal; in a terminal's foreground we assume the terminal.
func fromTerminal(s os.Signal) bool {
	if s != unix.SIGINT && s != unix.SIGQUIT {
		return false
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// end ends the process in the same way as a program ended: by the same signal if Go allows that, so that a shell
// sees an interrupt.
func end(status syscall.WaitStatus) {
	const signaled = 128
	if !status.Signaled() {
		os.Exit(status.ExitStatus())
	}
	one := status.Signal()
	if slices.Contains([]syscall.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGKILL}, one) {
		signal.Reset(one)
		_ = unix.Kill(os.Getpid(), one)
		select {} // the signal comes at once
	}
	os.Exit(signaled + int(one))
}
